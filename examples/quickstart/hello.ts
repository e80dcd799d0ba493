/** The plain HTTP service of the quickstart: says hello and shows what reached it. */
import { createServer, type Server } from "node:http";

export async function startHello(port: number): Promise<Server> {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(`${JSON.stringify({ hello: "world", path: request.url, host: request.headers.host })}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return server;
}

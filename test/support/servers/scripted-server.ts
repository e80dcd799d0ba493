/** A server that records requests with a JSON body and answers each as the test says. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { parseJson } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  /** The body as it came. */
  readonly text: string;
  /** undefined for an empty body. */
  readonly body: unknown;
}

export interface ScriptedServer {
  readonly port: number;
  readonly received: Received[];
}

/** Answers each request after its body has been read. */
export async function startScripted(
  context: ProofContext,
  respond: (request: Received, response: ServerResponse) => void,
  createFor: (listener: RequestListener) => Server & { closeAllConnections(): void } = createServer,
): Promise<ScriptedServer> {
  const received: Received[] = [];
  const read = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
    const { method = "", url = "", headers, rawHeaders } = request;
    const one = { method, path: url, headers, rawHeaders, text: body, body: body === "" ? undefined : parseJson(body) };
    received.push(one);
    respond(one, response);
  };
  const server = createFor((request, response) => void read(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, received }; // a TCP server has such an address
}

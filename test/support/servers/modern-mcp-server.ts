/** An MCP server of the official SDK (2.x), which serves 2026-07-28 beside the versions with sessions. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createMcpHandler, McpServer, type McpHttpHandler } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ProofContext } from "../proofs/prove.ts";

export interface ModernMcpServer {
  readonly port: number;
  /** Announces changes to those who listen. */
  readonly notify: McpHttpHandler["notify"];
  /** Headers of the requests, oldest first. */
  readonly seen: readonly IncomingHttpHeaders[];
  /** Tools called `wait` that were given up. */
  readonly cancelled: Promise<void>;
}

/** @param configure adds tools and the like to the server of each request */
export async function startModernMcpServer(
  context: Pick<ProofContext, "after">,
  name = "modern",
  configure: (server: McpServer) => void = () => undefined,
): Promise<ModernMcpServer> {
  const seen: IncomingHttpHeaders[] = [];
  const cancelled = Promise.withResolvers<void>();
  const handler = createMcpHandler(() => {
    const server = createTestServer(name, cancelled.resolve);
    configure(server);
    return server;
  });
  const port = await serveHandler(context, handler, ({ headers }) => seen.push(headers));
  return { port, notify: handler.notify, seen, cancelled: cancelled.promise };
}

/**
 * Serves a handler on a port of its own, which it returns.
 * @param onRequest called with each request before it is answered
 */
export async function serveHandler(
  context: Pick<ProofContext, "after">,
  handler: Pick<McpHttpHandler, "fetch" | "close">,
  onRequest: (request: IncomingMessage) => void = () => undefined,
): Promise<number> {
  const http = createServer((request, response) => {
    onRequest(request);
    void answer(handler, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(async () => {
    http.close();
    http.closeAllConnections();
    await handler.close();
  });
  // A TCP server that listens on a port has an address of this form.
  return (http.address() as AddressInfo).port;
}

/** Hands a request to the handler, which takes and returns those of the Fetch standard. */
async function answer(
  handler: Pick<McpHttpHandler, "fetch">,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const aborted = new AbortController();
  response.on("close", () => aborted.abort());
  const hasBody = request.method !== "GET" && request.method !== "HEAD";
  const forwarded = new Request(`http://127.0.0.1${request.url}`, {
    method: request.method ?? "GET",
    headers: Object.entries(request.headers).map(([key, value]): [string, string] => [key, String(value)]),
    signal: aborted.signal,
    ...(hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: "half" as const } : {}),
  });
  const { status, headers, body } = await handler.fetch(forwarded);
  response.writeHead(status, Object.fromEntries(headers));
  response.flushHeaders();
  if (body === null) response.end();
  else await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), response);
}

function createTestServer(name: string, onCancelled: () => void): McpServer {
  const server = new McpServer(
    { name, version: "2.0.0" },
    { capabilities: { tools: { listChanged: true } }, instructions: `instructions of ${name}` },
  );
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: "text", text: `${name}: ${text}` }],
  }));
  server.registerTool("wait", { inputSchema: z.object({}) }, async (_input, { mcpReq }) => {
    await new Promise<void>((resolve) => mcpReq.signal.addEventListener("abort", () => resolve()));
    onCancelled();
    return { content: [] };
  });
  return server;
}

/**
 * An MCP server of the official SDK (2.x) that speaks 2026-07-28 and nothing older: without sessions, with
 * `server/discover`, `subscriptions/listen` and input-required results.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ProofContext } from "../proofs/prove.ts";

export interface RequestEraServer {
  readonly port: number;
  /** Methods of the requests that arrived, oldest first. */
  readonly methods: readonly string[];
  /** Tells open subscriptions that a resource has changed. */
  changeResource(uri: string): void;
  /** Tells open subscriptions that the list of tools has changed. */
  changeTools(): void;
}

export async function startRequestEraServer(
  context: Pick<ProofContext, "after">,
  name: string,
): Promise<RequestEraServer> {
  const methods: string[] = [];
  const handler = createMcpHandler(() => createTestServer(name), { legacy: "reject" });
  const http = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    methods.push(String(request.headers["mcp-method"] ?? request.method));
    const aborted = new AbortController();
    response.on("close", () => aborted.abort());
    const headers = Object.entries(request.headers).map(([key, value]): [string, string] => [key, String(value)]);
    const reply = await handler.fetch(
      new Request(`http://127.0.0.1${request.url}`, {
        method: request.method ?? "POST",
        headers,
        signal: aborted.signal,
        ...(request.method === "POST" ? { body: Readable.toWeb(request) as BodyInit, duplex: "half" } : {}),
      } as RequestInit),
    );
    response.writeHead(reply.status, Object.fromEntries(reply.headers));
    response.flushHeaders();
    if (reply.body === null) response.end();
    else await pipeline(Readable.fromWeb(reply.body as Parameters<typeof Readable.fromWeb>[0]), response);
  }

  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(async () => {
    await handler.close();
    http.close();
    http.closeAllConnections();
  });
  return {
    port: (http.address() as AddressInfo).port,
    methods,
    changeResource: (uri) => handler.notify.resourceUpdated(uri),
    changeTools: () => handler.notify.toolsChanged(),
  };
}

function createTestServer(name: string): McpServer {
  const server = new McpServer(
    { name, version: "1.0.0" },
    {
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
      instructions: `instructions of ${name}`,
    },
  );
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: "text", text: `${name}: ${text}` }],
  }));
  server.registerTool("confirm", { inputSchema: z.object({}) }, (_input, extra) => {
    const answer = acceptedContent<{ ok: boolean }>(extra.mcpReq.inputResponses, "confirm");
    if (answer !== undefined) return { content: [{ type: "text", text: `${name}: ${answer.ok}` }] };
    return inputRequired({
      inputRequests: {
        confirm: inputRequired.elicit({
          message: `${name}?`,
          requestedSchema: { type: "object", properties: { ok: { type: "boolean" } } },
        }),
      },
    });
  });
  server.registerResource("note", `note://${name}/1`, {}, (uri) => ({
    contents: [{ uri: uri.href, text: `note of ${name}` }],
  }));
  return server;
}

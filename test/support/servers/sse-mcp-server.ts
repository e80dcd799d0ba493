/** An MCP server of the official SDK (1.x) over HTTP+SSE of 2024-11-05, and a record of what reached it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import type { ProofContext } from "../proofs/prove.ts";
import { createTestServer } from "./mcp-server.ts";

export interface SseMcpServer {
  readonly port: number;
  /** Method and path of each request, oldest first. */
  readonly calls: readonly string[];
  /** Number of streams that are open. */
  open(): number;
  /** Cuts all streams, as a restart would. */
  cut(): void;
}

export async function startSseMcpServer(context: Pick<ProofContext, "after">): Promise<SseMcpServer> {
  const calls: string[] = [];
  const transports = new Map<string, SSEServerTransport>();
  const http = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://server");
    calls.push(`${request.method} ${url.pathname}`);
    const known = transports.get(url.searchParams.get("sessionId") ?? "");
    if (request.method === "POST" && known !== undefined) return void known.handlePostMessage(request, response);
    if (request.method !== "GET" || url.pathname !== "/sse") return void response.writeHead(404).end();
    const transport = new SSEServerTransport("/messages", response);
    transports.set(transport.sessionId, transport);
    response.on("close", () => transports.delete(transport.sessionId));
    void createTestServer({}).connect(transport);
  });
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return {
    port: (http.address() as AddressInfo).port,
    calls,
    open: () => transports.size,
    cut: () => http.closeAllConnections(),
  };
}

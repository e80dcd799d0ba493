/** A gateway with one MCP server at /mcp, and the block `mcp` of backend settings at each of its places. */
import { documents, GATEWAY, route, startGateway, type TestGateway } from "./gateway.ts";
import type { BlockPlace } from "../proofs/block-places.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startMcpServer, type TestMcpServer } from "../servers/mcp-server.ts";

export interface McpGateway {
  readonly gateway: TestGateway;
  /** It issues no session ids, so that requests need no session. */
  readonly server: TestMcpServer;
  /** URL of the MCP endpoint. */
  readonly url: string;
  /** Returns the manifests with another block. */
  manifests(block: string): string;
}

/**
 * @param block flow YAML of the members of `mcp`
 * @param more further manifests
 */
export async function startMcpGateway(
  context: ProofContext,
  place: BlockPlace,
  block: string,
  ...more: readonly string[]
): Promise<McpGateway> {
  const server = await startMcpServer(context, { hasNoSessions: true, answersJson: true });
  const variant = `mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${server.port}}}]}`;
  const manifests = (members: string): string =>
    documents(GATEWAY, place.objects("tools", variant, `mcp: {${members}}`), route("tools", "tools", "/mcp"), ...more);
  const gateway = await startGateway(context, manifests(block));
  return { gateway, server, url: `${gateway.url()}/mcp`, manifests };
}

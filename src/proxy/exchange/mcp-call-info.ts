/** What reports read about a message of an MCP client; the handler of MCP backends supplies it. */

export interface McpCallInfo {
  /** Name of the method, `batch`, or `unknown` for one that the gateway does not know. */
  readonly method: string;
  /** Digest of the session id, which is a credential itself; undefined without a session. */
  readonly session: string | undefined;
  /** What the items of a list are, or the item of a call: `tool`, `prompt`, `resource`, `templates`, `task`. */
  readonly itemType: string | undefined;
  /** The target that was called, and its own name or URI of the item; undefined when several were called. */
  readonly item: { readonly target: string; readonly name: string | undefined } | undefined;
  /** The JSON-RPC error that the client got. Only the gateway's own text is kept: servers repeat arguments in theirs. */
  readonly error: { readonly code: number; readonly text: string | undefined } | undefined;
  /** The root `mcp` of expressions for logs and metrics. */
  readonly root: unknown;
}

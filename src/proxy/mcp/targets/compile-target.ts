/** Compiles a configured MCP server for its place, with the settings in force there. The handler calls it. */
import type { McpTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { HttpTarget } from "./http-target.ts";
import { SseTarget } from "./sse-target.ts";
import type { Target } from "./target.ts";

/** @throws ProxyError policy_refused */
export function compileTarget(node: McpTarget, deps: BackendDeps): Target {
  const settings = deps.settings(node.name, node.settings);
  return node.legacySse ? new SseTarget(node, settings, deps) : new HttpTarget(node, settings, deps);
}

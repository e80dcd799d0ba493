/** Compiles a configured MCP server for its place, with the settings in force there. The handler calls it. */
import type { McpTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { HttpTarget } from "./http-target.ts";
import type { Target } from "./target.ts";

/** @throws ProxyError policy_refused, backend_invalid */
export function compileTarget(node: McpTarget, deps: BackendDeps): Target {
  if (node.legacySse) throw new ProxyError("backend_invalid", { detail: `target ${node.name}: SSE is not served yet` });
  return new HttpTarget(node, deps.settings(node.name, node.settings), deps);
}

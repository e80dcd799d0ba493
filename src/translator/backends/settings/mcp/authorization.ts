/** Translates `mcp.authorization`: conditions on tools, prompts, resources and tasks. `index.ts` uses it. */
import type { Authorization } from "../../../../../generated/types/traffic.ts";
import { translateAuthorization } from "../../../policies/shared/authorization.ts";
import { phaseOfBackend } from "../../../policies/shared/expression-phase.ts";
import type { Report } from "../../../shared/report.ts";
import type { FullSettingsContext } from "../context.ts";
import type { McpFields } from "./mcp-field.ts";

export function translateMcpAuthorization(
  block: Authorization,
  _context: FullSettingsContext,
  report: Report,
): McpFields {
  const place = phaseOfBackend("mcp.authorization.policy.matchExpressions[0]");
  return { authorization: translateAuthorization(block, "", { report }, place) };
}

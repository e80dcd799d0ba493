/**
 * Translates `mcp` of a backend block: the table of its fields, with one translator each. `../settings.ts` uses it for
 * GwPolicies and GwBackends alike.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendMCP } from "../../../../../generated/types/mcp-policy.ts";
import { McpPolicySchema, type McpPolicy } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../../shared/report.ts";
import type { FullSettingsContext } from "../context.ts";
import { translateMcpAuthentication } from "./authentication.ts";
import { translateMcpAuthorization } from "./authorization.ts";
import { translateGuardrails } from "./guardrails.ts";
import type { McpFields, McpFieldTranslator } from "./mcp-field.ts";

/** A field that is added to the schema does not compile without an entry here. */
const FIELDS: { readonly [F in keyof Required<BackendMCP>]: McpFieldTranslator<F> } = {
  authorization: translateMcpAuthorization,
  authentication: translateMcpAuthentication,
  guardrails: translateGuardrails,
};

export function translateMcpPolicy(block: BackendMCP, context: FullSettingsContext, report: Report): McpPolicy {
  const fields: McpFields = {};
  for (const [name, translate] of Object.entries(FIELDS)) {
    // Each entry translates the value stored under its own name.
    const value = block[name as keyof BackendMCP];
    const into = within(report, name);
    if (value !== undefined)
      Object.assign(fields, (translate as McpFieldTranslator<never>)(value as never, context, into));
  }
  return create(McpPolicySchema, fields);
}

/** Translates `mcp.guardrails`: services that check and change requests and results. `index.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { MCPGuardrails, McpGuardrail as ApiGuardrail } from "../../../../../generated/types/mcp-policy.ts";
import {
  McpGuardrailPhase,
  McpGuardrailSchema,
  type McpGuardrail,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../../policies/shared/expression-phase.ts";
import { expressionMap } from "../../../policies/shared/unit.ts";
import { within, type Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";
import type { McpFields } from "./mcp-field.ts";

const PHASES: Readonly<Record<ApiGuardrail["methods"][string], McpGuardrailPhase>> = {
  Off: McpGuardrailPhase.UNSPECIFIED,
  Request: McpGuardrailPhase.REQUEST,
  Response: McpGuardrailPhase.RESPONSE,
  Full: McpGuardrailPhase.FULL,
};

/** Methods whose results alone are shown to services. */
const RESPONSE_ONLY: ReadonlySet<string> = new Set([
  "resources/subscribe",
  "resources/unsubscribe",
  "completion/complete",
]);

export function translateGuardrails(
  { processors }: MCPGuardrails,
  context: SettingsContext,
  report: Report,
): McpFields {
  const guardrails = processors.map((processor, at) =>
    translateGuardrail(processor, context, within(report, `processors[${at}]`)),
  );
  return { guardrails };
}

function translateGuardrail(
  { remote = {}, methods }: ApiGuardrail,
  { services }: SettingsContext,
  report: Report,
): McpGuardrail {
  const { failureMode, metadata, allowedRequestHeaders = [], disallowedRequestHeaders = [], ...endpoint } = remote;
  // An expression that does not compile leaves its value out.
  const warn = (path: string, message: string): void => report(path, message, "warning");
  const placeOf = (path: string) => phaseOfBackend(`mcp.guardrails.processors[0].${path}`);
  const sorted = Object.entries(methods).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [method, phase] of sorted)
    if (RESPONSE_ONLY.has(method) && (phase === "Request" || phase === "Full"))
      warn(`methods.${method}`, "requests of this method are not shown to services; only its results are");
  return create(McpGuardrailSchema, {
    service: services.resolve(endpoint, "remote", report),
    failOpen: failureMode === "FailOpen",
    methods: Object.fromEntries(sorted.map(([method, phase]) => [method, PHASES[phase]])),
    metadata: { expressions: expressionMap(metadata, "remote.metadata", { report: warn }, placeOf) },
    allowedHeaders: allowedRequestHeaders.map((name) => name.toLowerCase()),
    disallowedHeaders: disallowedRequestHeaders.map((name) => name.toLowerCase()),
  });
}

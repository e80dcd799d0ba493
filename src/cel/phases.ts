/**
 * Which variables exist where an expression stands: one place per phase of runtime/cel.md. An expression that reads what
 * its place does not have would fail on every request, so admission refuses it.
 */
import { type Environment, REQUEST_ENVIRONMENT } from "./environment.ts";
import type { CelType } from "./types.ts";

/** The phases in which expressions of users run: once for the process, then in the order of a request. */
export const CEL_PHASES = [
  "process",
  "connection",
  "gateway",
  "request",
  "backend",
  "llm",
  "callout",
  "mcp",
  "response",
  "log",
] as const;

export type CelPhase = (typeof CEL_PHASES)[number];

const PROCESS = ["env"];
const CONNECTION = ["source", "destination", ...PROCESS];
const IDENTITY = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "metadata"];
const REQUEST = [...CONNECTION, "request", "proxy", ...IDENTITY];
const BACKEND = [...REQUEST, "backend"];
const RESPONSE = [...BACKEND, "response", "llm", "mcpGuardrails"];

const ROOTS: Readonly<Record<CelPhase, readonly string[]>> = {
  process: PROCESS,
  connection: CONNECTION,
  gateway: REQUEST,
  request: REQUEST,
  backend: BACKEND,
  llm: [...BACKEND, "llm", "llmRequest"],
  callout: [...BACKEND, "llm", "llmRequest", "callout"],
  mcp: [...BACKEND, "mcp", "mcpGuardrails"],
  response: RESPONSE,
  log: [...RESPONSE, "mcp"],
};

/** Fields that come into being later than the variable that holds them. */
const LATER: Readonly<Record<string, { readonly fields: readonly string[]; readonly from: readonly CelPhase[] }>> = {
  "proxy.route": { fields: ["route"], from: ["request", "backend", "llm", "callout", "mcp", "response", "log"] },
  "request.endTime": { fields: ["endTime"], from: ["log"] },
  "proxy.requestProcessingDuration": {
    fields: ["requestProcessingDuration", "upstreamDuration"],
    from: ["response", "log"],
  },
  "proxy.responseProcessingDuration": { fields: ["responseProcessingDuration"], from: ["log"] },
  "mcp.methodName": { fields: ["methodName", "sessionId"], from: ["log"] },
};

/** What a call of a tool carries is not shown to authorization, which decides by identity alone. */
const NOT_FOR_AUTHORIZATION: ReadonlySet<string> = new Set(["arguments", "result", "error"]);

const environments: ReadonlyMap<CelPhase, Environment> = new Map(CEL_PHASES.map((place) => [place, build(place)]));

/** The environment of a place: the same functions everywhere, and the variables that exist there. */
export function environmentOf(place: CelPhase): Environment {
  // Every place was built above.
  return environments.get(place) as Environment;
}

function build(place: CelPhase): Environment {
  const variables = new Map<string, CelType>();
  for (const [root, type] of REQUEST_ENVIRONMENT.variables) {
    if (ROOTS[place].includes(root)) variables.set(root, typeAt(place, root, type));
  }
  return { ...REQUEST_ENVIRONMENT, variables };
}

function typeAt(place: CelPhase, root: string, type: CelType): CelType {
  const later = new Set(
    Object.entries(LATER)
      .filter(([path, { from }]) => path.startsWith(`${root}.`) && !from.includes(place))
      .flatMap(([, { fields }]) => fields),
  );
  const kept = without(type, later);
  if (root !== "mcp" || place !== "mcp" || kept.kind !== "object") return kept;
  const tool = kept.fields.get("tool");
  if (tool === undefined) return kept;
  return { ...kept, fields: new Map(kept.fields).set("tool", without(tool, NOT_FOR_AUTHORIZATION)) };
}

function without(type: CelType, names: ReadonlySet<string>): CelType {
  if (type.kind !== "object") return type;
  return { ...type, fields: new Map([...type.fields].filter(([field]) => !names.has(field))) };
}

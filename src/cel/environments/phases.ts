/**
 * The variables that exist in each phase of a request, and one environment per phase. Admission and translation check
 * an expression in the phase of its field (`x-gw-cel` in the schemas), and reject one that reads a variable of a later
 * phase: it would fail on every request. docs/reference/expressions.md lists the phases.
 */
import type { Environment } from "../environment.ts";
import { REQUEST_ENVIRONMENT } from "./index.ts";
import type { CelType } from "../types.ts";

/** The phases in which expressions of users run: once per process, then in the order of a request. */
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

/** Fields that are set later than the variable that holds them. */
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

/** Fields of an MCP tool call that authorization cannot read, because it decides by identity alone. */
const NOT_FOR_AUTHORIZATION: ReadonlySet<string> = new Set(["arguments", "result", "error"]);

const environments: ReadonlyMap<CelPhase, Environment> = new Map(CEL_PHASES.map((place) => [place, build(place)]));

/** Returns the environment of a phase: the same functions in all of them, and the variables that exist there. */
export function environmentOf(place: CelPhase): Environment {
  // The map above has an entry for every phase.
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

/**
 * Which variables exist where an expression stands: one place per phase of runtime/cel.md. An expression that reads what
 * its place does not have would fail on every request, so admission refuses it.
 */
import { type Environment, REQUEST_ENVIRONMENT, type Shape } from "./environment.ts";

/** The phases in which expressions of users run, in the order of a request. */
export const PLACES = ["connection", "request", "backend", "llm", "callout", "mcp", "response", "log"] as const;

export type Place = (typeof PLACES)[number];

const CONNECTION = ["source", "destination", "env"];
const IDENTITY = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "metadata"];
const REQUEST = [...CONNECTION, "request", "proxy", ...IDENTITY];
const BACKEND = [...REQUEST, "backend"];
const RESPONSE = [...BACKEND, "response", "llm", "mcpGuardrails"];

const ROOTS: Readonly<Record<Place, readonly string[]>> = {
  connection: CONNECTION,
  request: REQUEST,
  backend: BACKEND,
  llm: [...BACKEND, "llm", "llmRequest"],
  callout: [...BACKEND, "llm", "llmRequest", "callout"],
  mcp: [...BACKEND, "mcp", "mcpGuardrails"],
  response: RESPONSE,
  log: [...RESPONSE, "mcp"],
};

/** Fields that come into being later than the variable that holds them. */
const LATER: Readonly<Record<string, { readonly fields: readonly string[]; readonly from: readonly Place[] }>> = {
  "request.endTime": { fields: ["endTime"], from: ["log"] },
  "proxy.requestProcessingDuration": {
    fields: ["requestProcessingDuration", "upstreamDuration"],
    from: ["response", "log"],
  },
  "proxy.responseProcessingDuration": { fields: ["responseProcessingDuration"], from: ["log"] },
  "mcp.methodName": { fields: ["methodName", "sessionId"], from: ["log"] },
};

/** What a call of a tool carries is not shown to authorization, which decides by identity alone. */
const AUTHORIZED_TOOL: Shape = { target: true, name: true };

const environments: ReadonlyMap<Place, Environment> = new Map(PLACES.map((place) => [place, build(place)]));

/** The environment of a place: the same functions everywhere, and the variables that exist there. */
export function environmentOf(place: Place): Environment {
  // Every place was built above.
  return environments.get(place) as Environment;
}

function build(place: Place): Environment {
  const variables = new Map<string, Shape>();
  for (const [root, shape] of REQUEST_ENVIRONMENT.variables) {
    if (ROOTS[place].includes(root)) variables.set(root, shapeAt(place, root, shape));
  }
  return { ...REQUEST_ENVIRONMENT, variables };
}

function shapeAt(place: Place, root: string, shape: Shape): Shape {
  if (shape === true) return true;
  const later = new Set(
    Object.entries(LATER)
      .filter(([path, { from }]) => path.startsWith(`${root}.`) && !from.includes(place))
      .flatMap(([, { fields }]) => fields),
  );
  const kept = Object.fromEntries(Object.entries(shape).filter(([field]) => !later.has(field)));
  return root === "mcp" && place === "mcp" ? { ...kept, tool: AUTHORIZED_TOOL } : kept;
}

/**
 * The variables of request-time expressions, with the types of their fields. docs/reference/expressions.md is generated
 * from this table.
 */
import { parseType } from "../signature.ts";
import { type CelType, DYN, type ObjectType } from "../types.ts";

type Fields = Readonly<Record<string, string | ObjectType>>;

/** @param rest type of the fields that are not listed; without it there are no others */
function object(name: string, fields: Fields, rest?: CelType): ObjectType {
  const types = Object.entries(fields).map(
    ([field, type]) => [field, typeof type === "string" ? parseType(type) : type] as const,
  );
  return { kind: "object", name, fields: new Map(types), rest };
}

function all(type: string, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, type]));
}

const BODY = { headers: "headers", body: "bytes", bodyPrefix: "bytes" };
const COST_PARTS = ["input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio"];
const METADATA = "map<string, dyn>";

const REQUEST = object("request", {
  ...all("string", "method", "uri", "path", "pathAndQuery", "host", "scheme", "version"),
  ...BODY,
  ...all("timestamp", "startTime", "endTime"),
});

const SOURCE = object("source", {
  ...all("string", "address", "rawAddress", "spiffeId", "issuer", "subject", "subjectCn", "certificate"),
  ...all("int", "port", "rawPort"),
  subjectAltNames: "list<string>",
  connectHeaders: "headers",
  identity: object("source.identity", all("string", "trustDomain", "namespace", "serviceAccount")),
  unverifiedWorkload: object("source.unverifiedWorkload", all("string", "name", "namespace", "serviceAccount")),
});

const PROXY = object("proxy", {
  bind: "string",
  gateway: object("proxy.gateway", all("string", "namespace", "name")),
  listener: object("proxy.listener", all("string", "name")),
  route: object("proxy.route", all("string", "namespace", "name", "kind", "rule")),
  ...all("duration", "requestProcessingDuration", "upstreamDuration", "responseProcessingDuration"),
});

const LLM = object("llm", {
  ...all("bool", "streaming", "usageEstimated"),
  ...all("string", "requestModel", "provider", "responseModel", "serviceTier"),
  ...all("int", "inputTokens", "providerInputTokens", "providerTotalTokens", "outputTokens", "totalTokens"),
  ...all("int", "reasoningTokens", "cachedInputTokens", "cacheCreationInputTokens", "countTokens"),
  ...all("int", "inputImageTokens", "inputTextTokens", "inputAudioTokens"),
  ...all("int", "outputImageTokens", "outputTextTokens", "outputAudioTokens"),
  ...all("duration", "timeToFirstToken", "timePerOutputToken"),
  prompt: "list<map<string, dyn>>",
  completion: "list<string>",
  toolCalls: "list<map<string, dyn>>",
  params: object("llm.params", {
    ...all("double", "temperature", "top_p", "frequency_penalty", "presence_penalty"),
    ...all("int", "seed", "max_tokens", "dimensions"),
    encoding_format: "string",
  }),
  cost: object("llm.cost", all("double", "total", ...COST_PARTS)),
  costRates: object("llm.costRates", all("double", ...COST_PARTS)),
});

const MCP = object("mcp", {
  ...all("string", "methodName", "sessionId"),
  tool: object("mcp.tool", { ...all("string", "target", "name"), ...all("dyn", "arguments", "result", "error") }),
  prompt: object("mcp.prompt", all("string", "target", "name")),
  resource: object("mcp.resource", all("string", "target", "name")),
  task: object("mcp.task", all("string", "target", "name")),
});

export const REQUEST_VARIABLES: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ["request", REQUEST],
  ["response", object("response", { ...all("int", "code", "grpcStatus"), ...BODY })],
  ["source", SOURCE],
  ["destination", object("destination", { ...all("string", "address", "hostname"), port: "int" })],
  ["jwt", object("jwt", { rawToken: "secret" }, DYN)],
  ["apiKey", object("apiKey", { key: "secret" }, DYN)],
  ["basicAuth", object("basicAuth", all("string", "username"))],
  ["extauthz", parseType(METADATA)],
  ["extproc", parseType(METADATA)],
  ["mcpGuardrails", parseType(METADATA)],
  ["metadata", parseType(METADATA)],
  ["proxy", PROXY],
  ["backend", object("backend", all("string", "name", "type", "protocol"))],
  ["env", object("env", all("string", "podName", "namespace", "gateway"))],
  ["llm", LLM],
  ["llmRequest", parseType(METADATA)],
  ["mcp", MCP],
  ["callout", object("callout", { headers: "headers", body: "dyn" })],
]);

/** The variables of request-time expressions and the fields that each of them can have; `true` is "anything". */
import type { Shape } from "./environment.ts";

const MESSAGE_FIELDS = ["headers", "body", "bodyPrefix"];
const WORKLOAD = only("name", "namespace", "serviceAccount");
const TARGET_AND_NAME = only("target", "name");
const COST_PARTS = ["input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio"];

const LLM: Shape = {
  ...fields(
    ["streaming", "requestModel", "provider", "responseModel", "serviceTier"],
    ["inputTokens", "providerInputTokens", "providerTotalTokens", "outputTokens", "totalTokens", "reasoningTokens"],
    ["cachedInputTokens", "cacheCreationInputTokens", "countTokens", "timeToFirstToken", "timePerOutputToken"],
    ["inputImageTokens", "inputTextTokens", "inputAudioTokens"],
    ["outputImageTokens", "outputTextTokens", "outputAudioTokens"],
    ["prompt", "completion", "toolCalls"],
  ),
  params: only(
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "max_tokens",
    "encoding_format",
    "dimensions",
  ),
  cost: only("total", ...COST_PARTS),
  costRates: only(...COST_PARTS),
};

export const REQUEST_VARIABLES: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  [
    "request",
    fields(
      ["method", "uri", "path", "pathAndQuery", "host", "scheme", "version", "startTime", "endTime"],
      MESSAGE_FIELDS,
    ),
  ],
  ["response", fields(["code", "grpcStatus"], MESSAGE_FIELDS)],
  [
    "source",
    {
      ...fields(
        ["address", "port", "rawAddress", "rawPort", "spiffeId", "subjectAltNames", "issuer", "subject", "subjectCn"],
        ["certificate", "connectHeaders"],
      ),
      identity: only("trustDomain", "namespace", "serviceAccount"),
      unverifiedWorkload: WORKLOAD,
    },
  ],
  ["destination", only("address", "port", "hostname")],
  ["jwt", true],
  ["apiKey", true],
  ["basicAuth", only("username")],
  ["extauthz", true],
  ["extproc", true],
  ["mcpGuardrails", true],
  ["metadata", true],
  [
    "proxy",
    {
      ...fields(["bind", "requestProcessingDuration", "upstreamDuration", "responseProcessingDuration"]),
      gateway: only("namespace", "name"),
      listener: only("name"),
      route: only("namespace", "name", "kind", "rule"),
    },
  ],
  ["backend", only("name", "type", "protocol")],
  ["env", only("podName", "namespace", "gateway")],
  ["llm", LLM],
  ["llmRequest", true],
  [
    "mcp",
    {
      ...fields(["methodName", "sessionId"]),
      tool: only("target", "name", "arguments", "result", "error"),
      prompt: TARGET_AND_NAME,
      resource: TARGET_AND_NAME,
      task: TARGET_AND_NAME,
    },
  ],
  ["callout", only("headers", "body")],
]);

function fields(...groups: string[][]): Record<string, Shape> {
  return Object.fromEntries(groups.flat().map((field) => [field, true]));
}

function only(...names: string[]): Shape {
  return fields(names);
}

/**
 * The default fields of reports about requests and connections, in their order: their names in both presets, and how
 * each value is read. A field without a value is omitted. docs/reference/log-fields.md is made from this table.
 */
import { doubleOf, isDouble } from "../../cel/values.ts";
import type { AttributeValue } from "../../telemetry/attributes.ts";
import type { AgentInfo } from "./stream-info/agent-info.ts";
import type { McpInfo } from "./stream-info/mcp-info.ts";
import type { StreamInfo, HttpInfo } from "./stream-info/stream-info.ts";
import { decimalOf, integerOf, type LlmInfo } from "./stream-info/llm-info.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import type { GuardEffect, GuardOutcome } from "../exchange/guard-checks.ts";
import { queryOf } from "./query.ts";

export interface Column {
  readonly name: string;
  read(info: StreamInfo): AttributeValue | undefined;
}

export interface Field {
  readonly legacy: readonly Column[];
  /** Columns of the preset `Otel`; a value may be split into two. */
  readonly otel: readonly Column[];
  /** Set for fields of debug lines only. */
  readonly debug?: true;
  /** Set for fields that only requests of one kind have. */
  readonly kind?: "llm" | "agent" | "mcp";
  /** Explanation for the reference page. */
  readonly about: string;
}

type Read = (info: StreamInfo) => AttributeValue | undefined;

/** Declares one value with its names in the two presets. */
function field(legacy: string, otel: string, about: string, read: Read): Field {
  return { legacy: [{ name: legacy, read }], otel: [{ name: otel, read }], about };
}

function ofHttp(read: (http: HttpInfo) => AttributeValue | undefined): Read {
  return ({ http }) => (http === undefined ? undefined : read(http));
}

/**
 * Declares a field of LLM requests; both presets use the name of the OpenTelemetry conventions, or ours where they have
 * none.
 */
function ofLlm(name: string, about: string, read: (llm: LlmInfo) => AttributeValue | undefined): Field {
  return {
    ...field(name, name, about, ({ http }) => (http?.llm === undefined ? undefined : read(http.llm))),
    kind: "llm",
  };
}

/** Declares a field of calls of A2A agents. */
function ofAgent(name: string, about: string, read: (agent: AgentInfo) => AttributeValue | undefined): Field {
  return {
    ...field(name, name, about, ({ http }) => (http?.agent === undefined ? undefined : read(http.agent))),
    kind: "agent",
  };
}

/** Declares a field of messages of MCP clients. */
function ofMcp(name: string, about: string, read: (mcp: McpInfo) => AttributeValue | undefined): Field {
  return {
    ...field(name, name, about, ({ http }) => (http?.mcp === undefined ? undefined : read(http.mcp))),
    kind: "mcp",
  };
}

const endpointHost: Read = ({ endpoint }) => (endpoint === undefined ? undefined : splitEndpoint(endpoint).host);
const endpointPort: Read = ({ endpoint }) => (endpoint === undefined ? undefined : splitEndpoint(endpoint).port);

const QUERY = "url.query";

export const FIELDS: readonly Field[] = [
  {
    ...field("connection.id", "gwp.connection.id", "counted within the process", ({ connectionId }) => connectionId),
    debug: true,
  },
  field(
    "request.id",
    "gwp.request.id",
    "the `x-request-id` of the answer, which the client reads and the backend was sent",
    ofHttp(({ requestId }) => requestId),
  ),
  field("gateway", "gwp.gateway", "namespace and name", ({ listener }) =>
    listener.gateway === "" ? undefined : `${listener.namespace}/${listener.gateway}`,
  ),
  field("listener", "gwp.listener", "its name", ({ listener }) => textOf(listener.name)),
  field("route_rule", "gwp.route.rule", "name of the rule, or its place", ({ route }) => route?.rule),
  field("route", "gwp.route", "namespace and name", ({ route }) =>
    route === undefined ? undefined : `${route.namespace}/${route.name}`,
  ),
  {
    legacy: [{ name: "endpoint", read: ({ endpoint }) => endpoint }],
    otel: [
      { name: "server.address", read: endpointHost },
      { name: "server.port", read: endpointPort },
    ],
    about: "what was called last",
  },
  {
    legacy: [{ name: "src.addr", read: ({ client: { address, port } }) => `${address}:${port}` }],
    otel: [
      { name: "client.address", read: ({ client }) => client.address },
      { name: "client.port", read: ({ client }) => BigInt(client.port) },
    ],
    about: "the client, as a PROXY header names it where one is read",
  },
  field("src.identity", "gwp.client.identity", "SPIFFE id of the client's certificate", ({ spiffeId }) => spiffeId),
  field(
    "http.method",
    "http.request.method",
    "",
    ofHttp(({ method }) => method),
  ),
  field(
    "http.host",
    "gwp.request.host",
    "the authority as received",
    ofHttp(({ host }) => textOf(host)),
  ),
  {
    legacy: [{ name: "http.path", read: ofHttp(({ target }) => pathOf(target)) }],
    otel: [
      { name: "url.path", read: ofHttp(({ target }) => pathOf(target)) },
      { name: QUERY, read: ofHttp(({ target, secretParameters }) => queryOf(target, secretParameters)) },
    ],
    about: "as received; parameters that carry secrets read `REDACTED` in the query",
  },
  {
    legacy: [
      { name: "http.version", read: ofHttp(({ version }) => (version === "HTTP/2" ? "HTTP/2.0" : textOf(version))) },
    ],
    otel: [
      { name: "network.protocol.name", read: ofHttp(() => "http") },
      { name: "network.protocol.version", read: ofHttp(({ version }) => textOf(version.replace("HTTP/", ""))) },
    ],
    about: "`HTTP/1.1`, `HTTP/2.0`; OpenTelemetry has `http` with `1.1` or `2`",
  },
  field(
    "http.status",
    "http.response.status_code",
    "499 when the client went away first",
    ofHttp(({ status }) => BigInt(status)),
  ),
  field(
    "grpc.status",
    "rpc.grpc.status_code",
    "that of the trailers before that of the head",
    ofHttp(({ grpcStatus }) => integerOf(grpcStatus)),
  ),
  {
    legacy: [{ name: "tls.sni", read: ({ http, serverName }) => (http === undefined ? serverName : undefined) }],
    otel: [{ name: "tls.server.name", read: ({ serverName }) => serverName }],
    about: "name in the TLS handshake; the legacy form has it for connections alone",
  },
  field(
    "trace.id",
    "trace_id",
    "",
    ofHttp(({ trace }) => trace?.traceId),
  ),
  field(
    "span.id",
    "span_id",
    "",
    ofHttp(({ trace }) => trace?.spanId),
  ),
  field(
    "jwt.sub",
    "enduser.id",
    "claim of the token that was let in",
    ofHttp(({ jwtSubject }) => jwtSubject),
  ),
  field("protocol", "gwp.protocol", "of the backend: `http`, `llm`, `mcp`, `a2a`, `tcp`", ({ protocol }) => protocol),
  ofAgent("a2a.method", "name in JSON-RPC or gRPC, `batch`, `unknown`", ({ method }) => method),
  ofAgent("a2a.version", "`A2A-Version` of the request", ({ version }) => version),
  ofAgent("a2a.response.outcome", "`success`, `error`, `unknown`", ({ result }) => result.outcome),
  ofAgent("a2a.response.error_code", "`error.code` of the answer", ({ result }) => integerOf(result.errorCode)),
  ofAgent("a2a.result.kind", "`task`, `message`, `status-update`, `artifact-update`", ({ result }) => result.kind),
  ofAgent("a2a.task.state", "the last one of a stream", ({ result }) => result.state),
  ofAgent("a2a.context.id", "of the task or message", ({ result }) => result.contextId),
  ofMcp("mcp.method.name", "`unknown` for one that the protocol does not have", ({ call }) => call.method),
  ofMcp("mcp.target", "the server that was called alone", ({ call }) => call.item?.target),
  ofMcp("mcp.resource.type", "`tool`, `prompt`, `resource`, `templates`, `task`", ({ call }) => call.itemType),
  ofMcp("mcp.resource.uri", "as its server knows it", (mcp) => mcp.nameOf("resource")),
  ofMcp("gen_ai.tool.name", "as its server knows it", (mcp) => mcp.nameOf("tool")),
  ofMcp("gen_ai.prompt.name", "as its server knows it", (mcp) => mcp.nameOf("prompt")),
  ofMcp("mcp.session.id", "a digest: the id itself is a credential", ({ call }) => call.session),
  ofMcp("mcp.error.code", "of the JSON-RPC error", ({ call }) => integerOf(call.error?.code)),
  ofMcp("mcp.error.message", "of errors that the gateway made", ({ call }) => call.error?.text),
  field(
    "inferencepool.selected_endpoint",
    "gwp.inferencepool.endpoint",
    "what the picker of an InferencePool has chosen, or own balancing in its place",
    ofHttp(({ pickedEndpoint }) => pickedEndpoint),
  ),
  ofLlm("gen_ai.operation.name", "`chat`", ({ operation }) => operation),
  llmText("gen_ai.provider.name", "provider"),
  llmText("gen_ai.request.model", "requestModel"),
  llmText("gen_ai.response.model", "responseModel"),
  llmCount("gen_ai.usage.input_tokens", "inputTokens", ", cached ones included"),
  llmCount("gen_ai.usage.cache_creation.input_tokens", "cacheCreationInputTokens"),
  llmCount("gen_ai.usage.cache_read.input_tokens", "cachedInputTokens"),
  llmCount("gen_ai.usage.output_tokens", "outputTokens"),
  llmCount("gen_ai.usage.reasoning_tokens", "reasoningTokens"),
  ofLlm("gwp.ai.time_to_first_token", "seconds; streams alone", (llm) => llm.seconds("timeToFirstToken")),
  ofLlm("gwp.ai.time_per_output_token", "seconds; streams alone", (llm) => llm.seconds("timePerOutputToken")),
  llmCost("total"),
  ofLlm("gwp.ai.usage.estimated", "`true` where the counts are an estimate", (llm) => llm.isTrue("usageEstimated")),
  llmCount("gen_ai.usage.output_image_tokens", "outputImageTokens"),
  llmCount("gen_ai.usage.input_audio_tokens", "inputAudioTokens"),
  llmCount("gen_ai.usage.output_audio_tokens", "outputAudioTokens"),
  llmNumber("gen_ai.request.temperature", "temperature"),
  llmNumber("gen_ai.request.top_p", "top_p"),
  llmInteger("gen_ai.request.max_tokens", "max_tokens"),
  llmNumber("gen_ai.request.frequency_penalty", "frequency_penalty"),
  llmNumber("gen_ai.request.presence_penalty", "presence_penalty"),
  llmInteger("gen_ai.request.seed", "seed"),
  guardField(
    "gwp.guardrail.action",
    "what a prompt guard did, or with `Audit` would have done",
    ({ outcome }) => GUARD_ACTIONS[outcome],
  ),
  guardField("gwp.guardrail.kind", "the kind of that guard", ({ kind }) => kind),
  guardField("gwp.guardrail.phase", "`request` or `response`", ({ phase }) => phase.toLowerCase()),
  field(
    "retry.attempt",
    "http.request.resend_count",
    "how often it was tried again",
    ofHttp(({ retries }) => (retries === 0 ? undefined : BigInt(retries))),
  ),
  field("error", "error.message", "what went wrong, for operators", ({ error }) => error),
  field("reason", "error.type", "who ended it, where that was not the backend", ({ reason }) => reason),
  {
    legacy: [{ name: "duration", read: ({ durationMs }) => `${Math.round(durationMs)}ms` }],
    otel: [{ name: "gwp.duration_ms", read: ({ durationMs }) => Math.round(durationMs * 1000) / 1000 }],
    about: "until the end of the body",
  },
];

/** Returns a field of requests that a guard has acted on; most requests have none. */
function guardField(name: string, about: string, read: (effect: GuardEffect) => string): Field {
  return {
    ...field(name, name, about, ({ http }) => (http?.guardEffect === undefined ? undefined : read(http.guardEffect))),
    kind: "llm",
  };
}

const GUARD_ACTIONS: Readonly<Record<GuardOutcome, string>> = {
  Allow: "allow",
  Mask: "mask",
  Reject: "reject",
  FailOpen: "fail_open",
  AuditMask: "would_mask",
  AuditReject: "would_reject",
};

function llmText(name: string, from: string): Field {
  return ofLlm(name, `\`llm.${from}\``, (llm) => llm.text(from));
}

function llmCount(name: string, from: string, more = ""): Field {
  return ofLlm(name, `\`llm.${from}\`${more}`, (llm) => llm.count(from));
}

/** Declares a part of the cost. @param name in attributes */
function llmCost(name: string, part = name): Field {
  return ofLlm(`gwp.ai.usage.cost.${name}`, `\`llm.cost.${part}\`, decimal text`, (llm) => {
    const dollars = llm.cost(part);
    return dollars === undefined ? undefined : decimalOf(dollars);
  });
}

function llmNumber(name: string, param: string): Field {
  return ofLlm(name, `\`llm.params.${param}\``, (llm) => {
    const value = llm.param(param);
    return typeof value === "number" || isDouble(value) ? doubleOf(value) : undefined;
  });
}

function llmInteger(name: string, param: string): Field {
  return ofLlm(name, `\`llm.params.${param}\``, (llm) => integerOf(llm.param(param)));
}

/**
 * Returns the attributes of a span: the legacy fields, and the OpenTelemetry names where they differ. The error is
 * omitted, because it is the status of the span.
 * @param removed names of either preset; removing one name of a value removes the other as well
 */
export function spanColumns(removed: ReadonlySet<string>): readonly Column[] {
  const isRemoved = ({ name }: Column): boolean => removed.has(name);
  return [...FIELDS, ...SPAN_FIELDS].flatMap(({ debug, legacy, otel }) => {
    if (debug === true || legacy.some(isRemoved) || legacy.some(({ name }) => name === "error")) return [];
    const names = new Set(legacy.map(({ name }) => name));
    // The legacy path has no query, so removing the query keeps the path.
    const isShort = otel.some((column) => isRemoved(column) && column.name !== QUERY);
    return [...(isShort ? [] : legacy), ...otel.filter((column) => !names.has(column.name) && !isRemoved(column))];
  });
}

/** Parts of the cost, by the names of attributes: spans show them, and log lines only the sum. */
const COST_PARTS: readonly (readonly [name: string, part: string])[] = [
  ["input", "input"],
  ["output", "output"],
  ["cache_read", "cacheRead"],
  ["cache_write", "cacheWrite"],
  ["reasoning", "reasoning"],
  ["input_audio", "inputAudio"],
  ["output_audio", "outputAudio"],
];

const SPAN_FIELDS: readonly Field[] = COST_PARTS.map(([name, part]) => llmCost(name, part));

function textOf(text: string): string | undefined {
  return text === "" ? undefined : text;
}

/** Splits host and port; the path of a Unix socket has no port. */
function splitEndpoint(endpoint: string): { host: string; port: bigint | undefined } {
  if (endpoint.startsWith("/")) return { host: endpoint.replace(/:0$/, ""), port: undefined };
  const [, host, port] = /^\[?([^/]*?)\]?:(\d{1,5})$/.exec(endpoint) ?? [];
  return port === undefined ? { host: endpoint, port: undefined } : { host: host as string, port: BigInt(port) }; // both groups matched
}

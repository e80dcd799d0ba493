/** What each variable of expressions has to be for the request of test/feature/expression-variables.test.ts. */
import { hostname } from "node:os";
import type { Environment } from "../../src/cel/environment.ts";
import type { CelType } from "../../src/cel/types.ts";

export interface Expected {
  /** The expression that is asked; by default the path itself. */
  readonly ask?: string;
  readonly is: unknown;
}

/** Paths of an environment that hold a value: "request.method", "proxy.gateway.name", "metadata". */
export function leavesOf({ variables }: Environment): string[] {
  return [...variables].flatMap(([name, type]) => leaves(name, type));
}

function leaves(path: string, type: CelType): string[] {
  if (type.kind !== "object") return [path];
  return [...type.fields].flatMap(([field, inner]) => leaves(`${path}.${field}`, inner));
}

const text = (path: string, is: unknown): Expected => ({ ask: `string(${path})`, is });
const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const SPAN = /^[0-9.]+(?:µs|ms|s)$/;

/** What holds for a request over HTTPS with a client certificate to a plain backend. */
export const EXPECTED: Readonly<Record<string, Expected>> = {
  "request.method": { is: "POST" },
  "request.uri": { is: "https://a.test/things?x=1" },
  "request.path": { is: "/things" },
  "request.pathAndQuery": { is: "/things?x=1" },
  "request.host": { is: "a.test" },
  "request.scheme": { is: "https" },
  "request.version": { is: "HTTP/1.1" },
  "request.headers": { ask: `request.headers["x-test"]`, is: "yes" },
  "request.body": text("request.body", "payload"),
  "request.bodyPrefix": text("request.bodyPrefix", "payload"),
  "request.startTime": text("request.startTime", TIME),
  "request.endTime": text("request.endTime", TIME),
  "response.code": { is: 207 },
  "response.grpcStatus": { is: 5 },
  "response.headers": { ask: `response.headers["x-upstream"]`, is: "here" },
  "response.body": text("response.body", "from the upstream"),
  "response.bodyPrefix": text("response.bodyPrefix", "from the upstream"),
  "source.address": { is: "127.0.0.1" },
  "source.port": { is: /^\d+$/ },
  "source.rawAddress": { is: "127.0.0.1" },
  "source.rawPort": { is: /^\d+$/ },
  "source.identity.trustDomain": { is: "mesh.test" },
  "source.identity.namespace": { is: "shop" },
  "source.identity.serviceAccount": { is: "cart" },
  "source.spiffeId": { is: "spiffe://mesh.test/ns/shop/sa/cart" },
  "source.subjectAltNames": { is: ["cart.test", "spiffe://mesh.test/ns/shop/sa/cart", "10.1.2.3"] },
  "source.issuer": { is: "CN=cart" },
  "source.subject": { is: "CN=cart" },
  "source.subjectCn": { is: "cart" },
  "source.certificate": { is: /^-----BEGIN CERTIFICATE-----\n/ },
  "destination.address": { is: "127.0.0.1" },
  "destination.port": { is: /^\d+$/ },
  "destination.hostname": { is: "a.test" },
  "jwt.rawToken": { ask: "jwt.rawToken.unredacted()", is: /^ey/ },
  "apiKey.key": { ask: "apiKey.key.unredacted()", is: "alice-key" },
  "basicAuth.username": { is: "ann" },
  extauthz: { ask: "extauthz.verdict", is: "fine" },
  metadata: { ask: "metadata.note", is: "noted" },
  "proxy.bind": { is: "8443/default/gw" },
  "proxy.gateway.namespace": { is: "default" },
  "proxy.gateway.name": { is: "gw" },
  "proxy.listener.name": { is: "a" },
  "proxy.route.namespace": { is: "default" },
  "proxy.route.name": { is: "web" },
  "proxy.route.kind": { is: "HTTPRoute" },
  "proxy.route.rule": { is: "rule" },
  "proxy.requestProcessingDuration": text("proxy.requestProcessingDuration", SPAN),
  "proxy.upstreamDuration": text("proxy.upstreamDuration", SPAN),
  "proxy.responseProcessingDuration": text("proxy.responseProcessingDuration", SPAN),
  "backend.name": { is: "default/web" },
  "backend.type": { is: "static" },
  "backend.protocol": { is: "http" },
  "env.podName": { is: hostname() },
  "env.namespace": { is: "default" },
  "env.gateway": { is: "gw" },
};

/** Declared, and filled by what does not serve yet: path or variable → the reason. An entry that has a value is a mistake. */
export const NOT_YET: Readonly<Record<string, string>> = {
  "source.unverifiedWorkload": "addresses of workloads do not reach the data plane",
  "source.connectHeaders": "the request comes through no tunnel; test/feature/connect-tunnel.test.ts has one",
  extproc: "no request is sent to an external processor",
  mcp: "no backend speaks MCP",
  mcpGuardrails: "no backend speaks MCP",
  llmRequest: "no setting of an LLM backend is computed",
  callout: "no callout is transformed",
};

/** Fields of `llm` for one answer of a chat completions provider. */
export const LLM_EXPECTED: Readonly<Record<string, Expected>> = {
  "llm.streaming": { is: false },
  "llm.requestModel": { is: "of-the-client" },
  "llm.provider": { is: /./ },
  "llm.responseModel": { is: "of-the-provider" },
  "llm.inputTokens": { is: 10 },
  "llm.outputTokens": { is: 4 },
  "llm.providerInputTokens": { is: 10 },
  "llm.providerTotalTokens": { is: 14 },
  "llm.totalTokens": { is: 14 },
  "llm.reasoningTokens": { is: 2 },
  "llm.cachedInputTokens": { is: 3 },
  "llm.params.temperature": { is: 1 },
  "llm.params.top_p": { is: 0.5 },
  "llm.params.frequency_penalty": { is: 0.25 },
  "llm.params.presence_penalty": { is: -1 },
  "llm.params.seed": { is: 7 },
  "llm.params.max_tokens": { is: 64 },
  "llm.params.dimensions": { is: 256 },
  "llm.params.encoding_format": { is: "float" },
};

export const LLM_NOT_YET: Readonly<Record<string, string>> = {
  "llm.cacheCreationInputTokens": "this wire format does not report it",
  "llm.serviceTier": "it is not read from answers",
  "llm.countTokens": "no route counts tokens",
  "llm.inputImageTokens": "providers' splits are not read",
  "llm.inputTextTokens": "providers' splits are not read",
  "llm.inputAudioTokens": "providers' splits are not read",
  "llm.outputImageTokens": "providers' splits are not read",
  "llm.outputTextTokens": "providers' splits are not read",
  "llm.outputAudioTokens": "providers' splits are not read",
  "llm.timeToFirstToken": "the answer is no stream",
  "llm.timePerOutputToken": "the answer is no stream",
  "llm.prompt": "the content of a conversation is not kept",
  "llm.completion": "the content of a conversation is not kept",
  "llm.toolCalls": "the content of a conversation is not kept",
  "llm.cost": "there are no prices",
  "llm.costRates": "there are no prices",
};

/** The reason why a path has no value, also for what lies below a path of the table. */
export function reasonOf(path: string, table: Readonly<Record<string, string>>): string | undefined {
  return Object.entries(table).find(([known]) => path === known || path.startsWith(`${known}.`))?.[1];
}

/** One condition that says of every path what the table says. */
export function holdAll(
  paths: readonly string[],
  expected: Readonly<Record<string, Expected>>,
  notYet: Readonly<Record<string, string>>,
): string {
  const parts = paths.map((path) => {
    const { ask = path, is } = expected[path] ?? {};
    if (reasonOf(path, notYet) !== undefined) return `default(${ask}, "absent") == "absent"`;
    return is instanceof RegExp
      ? `string(${ask}).matches(${JSON.stringify(is.source)})`
      : `${ask} == ${JSON.stringify(is)}`;
  });
  return parts.join(" && ");
}

/** One expression that reads all the paths; what has no value reads "absent". */
export function askAll(paths: readonly string[], expected: Readonly<Record<string, Expected>>): string {
  return `{${paths.map((path) => `"${path}": default(${expected[path]?.ask ?? path}, "absent")`).join(", ")}}`;
}

/**
 * The handler of LLM backends, the end of the pipeline: reads a request in a client format, picks a provider,
 * translates the request if the provider speaks another format, sends it, and returns the reply in the client's format.
 * It charges token budgets and fills the `llm` root of expressions. Retries are made by the caller. The registry
 * creates one per place.
 */
import type { AiBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { SessionKey } from "../balancing/affinity.ts";
import { Attempt } from "../backends/attempt.ts";
import { beginCallSpan, type CallHead } from "../observability/tracing/call-span.ts";
import type { BackendDeps, BackendHandler } from "../backends/handler.ts";
import type { Outgoing } from "../backends/transformation.ts";
import type { Upstream, UpstreamRequest } from "../upstream/upstream.ts";
import { nameOfTarget } from "../upstream/dial/connection-settings.ts";
import { fixedVersion } from "../upstream/http-version.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RoutedExchange, Reply } from "../exchange/exchange.ts";
import { pathOf } from "../../lib/request-target.ts";
import type { OutboundSpan } from "../observability/tracing/outbound-span.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import { readReply, textBytes, type ReplyContext } from "./reply.ts";
import { applyPolicies } from "./apply-policies.ts";
import { compileEndpoint, type Endpoint } from "./endpoint.ts";
import type { ClientFormat } from "./client-formats/client-format.ts";
import { clientFormatOf, formatOfRouteType } from "./client-formats/index.ts";
import { RequestGuards } from "./guards/run.ts";
import type { ChatFormat } from "./formats/chat-format.ts";
import { providerFormat } from "./formats/index.ts";
import type { AiPolicies } from "./policies/index.ts";
import type { JsonObject } from "./json.ts";
import { printProviderRequest } from "./print-request.ts";
import type { ProviderCall } from "./providers/provider.ts";
import { changedSource, readRequest } from "./request.ts";
import { ProviderGroups } from "./select.ts";
import { paramsOf } from "./params.ts";
import { asksForUsage } from "./formats/completions/stream-options.ts";
import { openLedger } from "./ledger.ts";

/** @throws ConfigError when a provider is unknown */
export function createLlmHandler(ai: AiBackend, deps: BackendDeps): BackendHandler {
  const groups = new ProviderGroups(
    ai.groups.map(({ providers }) => providers.map((node) => compileEndpoint(node, deps))),
  );
  for (const { providers } of ai.groups)
    for (const { model } of providers) if (model !== "") deps.meter?.modelConfigured(model);
  const { sessionAffinity } = deps.settings("", undefined);
  const session = sessionAffinity === undefined ? undefined : new SessionKey(sessionAffinity, deps.expression);
  return async function llm(exchange) {
    if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to a model" });
    const { tried } = exchange;
    const affinity = session === undefined ? undefined : await session.of(exchange);
    const endpoint = groups.select(deps, { affinity, tried });
    if (endpoint === undefined) throw new ProxyError("backend_invalid", { detail: "no provider is configured" });
    tried?.push(endpoint);
    const client = requireServed(findClientFormat(exchange, endpoint.policies), exchange);
    return callProvider(exchange, endpoint, { client, body: undefined, model: endpoint.node.model }, deps);
  };
}

/** What is known of a request before its provider is called. */
export interface ProviderChoice {
  readonly client: ChatFormat;
  /** The client's body when it was read already. */
  readonly body: JsonObject | undefined;
  /** Name of the model to ask for; "" for the one that the client names. */
  readonly model: string;
}

/** Calls one provider and returns its answer in the client's format. */
export async function callProvider(
  exchange: RoutedExchange,
  endpoint: Endpoint,
  choice: ProviderChoice,
  deps: Pick<BackendDeps, "log" | "upstream">,
): Promise<Reply> {
  const { client } = choice;
  const { node, transformation, policies } = endpoint;
  exchange.backend = { name: exchange.backend?.name ?? node.name, type: "ai", protocol: "llm" };
  const out = transformation === undefined ? undefined : await transformation.outgoing(exchange, endpoint.auth);
  const read = out === undefined || out.body === exchange.requestBody ? choice.body : undefined;
  const source = out === undefined ? exchange : changedSource(exchange, out);
  const object = read ?? (await readRequest(source));
  const request = applyPolicies(object, { client, policies, pinned: choice.model, exchange });
  const { model } = request;
  const provider = providerFormat(client.name, endpoint.provider.formats(node, model));
  if (provider === undefined) throw new ProxyError("llm_conversion_unsupported");
  policies.addPrompt?.(request.body, client.name);
  const { streaming } = request;
  const to: ProviderCall = { wire: provider.name, model, streaming };
  // Read before printing, which may change the client's object.
  const facts = { requestModel: model, provider: node.identity, streaming, ...paramsOf(request.body) };
  const hidesUsage = client === provider && streaming && !asksForUsage(client, request);
  const inputBytes = (): number => textBytes(client.client?.texts.requestTexts(request.body));
  const ledger = await openLedger(exchange, facts, inputBytes);
  const guards = guardsOf(endpoint, client, exchange);
  const rejection = await guards?.checkRequest(request.body);
  if (rejection !== undefined) {
    ledger.settle("failed");
    return rejection;
  }
  const { body, toolNames, losses } = printProviderRequest(request, {
    client,
    provider,
    endpoint,
    call: to,
    headers: source.requestHeaders,
    exchange,
  });
  if (losses.length > 0)
    deps.log.debug("fields that the provider cannot express were left out", {
      provider: node.name,
      fields: losses.join(" "),
    });
  const context = {
    client,
    provider,
    request: request.body,
    model,
    toolNames,
    ownForm: endpoint.provider.ownForm?.(to),
    hidesUsage,
    writesList: request.wantsList === true,
    ledger,
    guards,
    streaming,
    limitBytes: exchange.responseLimitBytes,
  };
  return send({ endpoint, to, out, body, context }, exchange, deps.upstream);
}

/** @returns undefined when no guards are configured */
function guardsOf({ guards }: Endpoint, { client }: ChatFormat, exchange: RoutedExchange): RequestGuards | undefined {
  if (guards === undefined) return undefined;
  if (client === undefined) throw new ProxyError("guard_failed", { detail: "the format has no texts to check" });
  return new RequestGuards(guards, client.texts, exchange);
}

/** Returns the format that `routes` gives the path, or the one whose clients call it where no routes are configured. */
function findClientFormat(exchange: RoutedExchange, { findRouteType }: AiPolicies): ClientFormat {
  const path = pathOf(exchange.target);
  if (findRouteType === undefined) return clientFormatOf(path);
  exchange.clientFormat = formatOfRouteType(findRouteType(path));
  return clientFormatOf(path, exchange.clientFormat);
}

/** @throws ProxyError llm_upgrade_unsupported, llm_format_unserved */
export function requireServed({ name, format }: ClientFormat, { upgrade }: RoutedExchange): ChatFormat {
  // Clients that open Responses over a WebSocket fall back to HTTP at once on 426, and on no other status.
  if (name === "Responses" && upgrade !== undefined) throw new ProxyError("llm_upgrade_unsupported");
  if (format !== undefined) return format;
  throw new ProxyError("llm_format_unserved", {
    text: `failed to process LLM request: ${name} requests are not served yet`,
  });
}

/** One call to a provider. */
interface Call {
  readonly endpoint: Endpoint;
  readonly to: ProviderCall;
  /** The client's request after a transformation; undefined when there is none. */
  readonly out: Outgoing | undefined;
  readonly body: Buffer;
  readonly context: ReplyContext;
}

/** Returns the value of gen_ai.operation.name (OpenTelemetry semantic conventions). */
function operationOf({ wire }: ProviderCall): string {
  if (wire === "Rerank") return "rerank";
  return wire === "Embeddings" ? "embeddings" : "chat";
}

const MAX_MODEL = 256;

async function send(call: Call, exchange: RoutedExchange, upstream: Upstream): Promise<Reply> {
  const { endpoint, to, out, body, context } = call;
  const { path, headers } = endpoint.address(to, exchange, out);
  const { target, record } = endpoint.spot(to);
  exchange.endpoint = nameOfTarget(target);
  const { limits } = endpoint;
  const attempt = new Attempt(exchange, endpoint.record, endpoint.rule, false);
  if (record !== undefined) attempt.alsoTell(record);
  if (exchange.trace !== undefined)
    attempt.span = spanOf(call, exchange.trace, exchange, { method: "POST", path, headers });
  context.ledger.sent();
  try {
    endpoint.signer?.({ method: "POST", path, headers, body }, to);
    const response = await upstream.send(target, {
      version: fixedVersion(limits?.version) ?? "negotiated",
      method: "POST",
      path,
      headers,
      body,
      ...deadlineOf(exchange, performance.now(), limits?.requestTimeoutMs || Infinity),
      abort: exchange,
    });
    const answer = { ...response };
    if (attempt.readsBody) await attempt.answeredWithBody(answer);
    else attempt.answered(answer);
    const reply = await readReply(answer, context);
    if (endpoint.transformation !== undefined) await endpoint.transformation.answered(exchange, reply);
    return reply;
  } catch (error) {
    attempt.failed(error);
    context.ledger.settle("failed");
    throw error;
  }
}

function spanOf(
  { endpoint, to }: Call,
  trace: RequestTrace,
  exchange: RoutedExchange,
  head: CallHead,
): OutboundSpan | undefined {
  // The client may have chosen the name, so its length is limited.
  const model = to.model.slice(0, MAX_MODEL);
  const operation = operationOf(to);
  return beginCallSpan(trace, exchange, head, {
    subtype: "Llm",
    name: `${operation} ${model}`,
    attributes: [
      ["gen_ai.operation.name", operation],
      ["gen_ai.provider.name", endpoint.node.identity],
      ["gen_ai.request.model", model],
    ],
  });
}

/** Returns the earlier of the request's deadline and the limit of one attempt. */
function deadlineOf(
  { deadlineAtMs, backendTimeoutMs }: RoutedExchange,
  startedAtMs: number,
  timeoutMs: number,
): Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode"> {
  const attemptAtMs = startedAtMs + Math.min(backendTimeoutMs ?? Infinity, timeoutMs);
  if (attemptAtMs < (deadlineAtMs ?? Infinity)) return { deadlineAtMs: attemptAtMs, timeoutCode: "backend_timeout" };
  return { deadlineAtMs, timeoutCode: "request_timeout" };
}

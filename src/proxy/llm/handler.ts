/**
 * The handler of LLM backends, the end of the pipeline: reads a request in a client format, picks a provider,
 * translates the request if the provider speaks another format, sends it, and returns the reply in the client's format.
 * It charges token budgets and fills the `llm` root of expressions. Retries are made by the caller. The registry
 * creates one per place.
 */
import type { AiBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { SessionKey } from "../balancing/affinity.ts";
import { traceSelection, type NamedEndpoint } from "../balancing/trace-selection.ts";
import type { Admit } from "../backends/admission.ts";
import type { BackendDeps, BackendHandler } from "../backends/handler.ts";
import type { Outgoing } from "../backends/transformation.ts";
import type { Body } from "../exchange/body.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RoutedExchange, Reply } from "../exchange/exchange.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import { readReply, textBytes } from "./reply.ts";
import { applyPolicies } from "./apply-policies.ts";
import { NO_TAGS } from "./cost/catalog.ts";
import { compileEndpoint, type Endpoint } from "./call/endpoint.ts";
import type { ClientFormat } from "./client-formats/client-format.ts";
import { clientFormatOf, formatOfRouteType } from "./client-formats/index.ts";
import { RequestGuards } from "./guards/run.ts";
import type { ChatFormat, FormatName, LlmRequest } from "./formats/chat-format.ts";
import { providerFormat } from "./formats/index.ts";
import type { AiPolicies } from "./policies/index.ts";
import { findOperation } from "./operations/index.ts";
import type { JsonObject } from "./shared/json.ts";
import { operationForm, printProviderRequest } from "./print-request.ts";
import type { ProviderCall } from "./providers/provider.ts";
import { changedSource, readRequest } from "./request.ts";
import { ProviderGroups } from "./call/select.ts";
import { paramsOf } from "./params.ts";
import { asksForUsage } from "./formats/completions/stream-options.ts";
import { sendCall } from "./call/send.ts";
import { openFreeLedger, openLedger } from "./call/ledger.ts";

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
    if (exchange.debug !== undefined) {
      const picked = { chosen: endpoint.node.name, affinity, nowMs: deps.nowMs() };
      traceSelection(exchange.debug, namedEndpoints(groups), picked);
    }
    const row = findClientFormat(exchange, endpoint.policies);
    return callProvider(exchange, endpoint, { row, body: undefined, model: endpoint.node.model }, deps);
  };
}

/** Providers have no address of their own, so operators know them by name. */
function namedEndpoints(groups: ProviderGroups<Endpoint>): NamedEndpoint[] {
  return groups.all.map(({ node, record, capacity, hash }) => ({ name: node.name, record, capacity, hash }));
}

/** What is known of a request before its provider is called. */
export interface ProviderChoice {
  /** Row of the client's format. */
  readonly row: ClientFormat;
  /** The client's body when it was read already. */
  readonly body: JsonObject | undefined;
  /** Name of the model to ask for; "" for the one that the client names. */
  readonly model: string;
  /** The body with the name of the chosen model, for operations that keep bodies otherwise; undefined as it came. */
  readonly renamed?: Buffer | undefined;
}

type ProviderDeps = Pick<BackendDeps, "catalogs" | "log" | "upstream">;

/** Calls one provider, when it lets the request through, and returns its answer in the client's format. */
export function callProvider(
  exchange: RoutedExchange,
  endpoint: Endpoint,
  choice: ProviderChoice,
  deps: ProviderDeps,
): Promise<Reply> {
  const { node, admit } = endpoint;
  exchange.backend = { name: exchange.backend?.name ?? node.name, type: "ai", protocol: "llm" };
  const traffic = endpoint.traffic();
  if (traffic !== undefined) return callGoverned(exchange, endpoint, choice, { ...deps, traffic });
  if (admit === undefined) return callAdmitted(exchange, endpoint, choice, deps);
  return admit(exchange, () => callAdmitted(exchange, endpoint, choice, deps));
}

/** Calls a provider after the traffic policies of the pool behind it, which may write another body than was read. */
function callGoverned(
  exchange: RoutedExchange,
  endpoint: Endpoint,
  choice: ProviderChoice,
  deps: ProviderDeps & { readonly traffic: Admit },
): Promise<Reply> {
  const { requestBody } = exchange;
  const call = (): Promise<Reply> => {
    const isSame = exchange.requestBody === requestBody;
    return callAdmitted(exchange, endpoint, isSame ? choice : { ...choice, body: undefined, renamed: undefined }, deps);
  };
  const { admit } = endpoint;
  return deps.traffic(exchange, admit === undefined ? call : () => admit(exchange, call));
}

async function callAdmitted(
  exchange: RoutedExchange,
  endpoint: Endpoint,
  choice: ProviderChoice,
  deps: ProviderDeps,
): Promise<Reply> {
  const { node, transformation, policies } = endpoint;
  const operation = findOperation(choice.row.name, exchange);
  const client = operation ?? requireServed(choice.row);
  const { debug } = exchange;
  const identity = node.identity;
  debug?.record({ type: "llmRouteResolved", provider: identity, routeType: choice.row.name });
  const out =
    transformation === undefined
      ? undefined
      : await transformation.outgoing(exchange, endpoint.auth, endpoint.authCall(undefined, exchange));
  if (typeof client === "function")
    return client({
      endpoint,
      exchange,
      out,
      given: bodyToKeep(choice, exchange, out),
      upstream: deps.upstream,
      catalogs: deps.catalogs,
    });
  const read = out === undefined || out.body === exchange.requestBody ? choice.body : undefined;
  const source = out === undefined ? exchange : changedSource(exchange, out);
  const object = read ?? (await readRequest(source));
  debug?.body("llm request before translation", Buffer.from(JSON.stringify(object)));
  const request = applyPolicies(object, { client, policies, pinned: choice.model, exchange });
  const { model } = request;
  const catalog = deps.catalogs.of(exchange.listener);
  const tags = catalog?.find(node.identity, [model])?.tags ?? NO_TAGS;
  const provider = providerFormat(client.name, endpoint.provider.formats(node, model, tags));
  policies.addPrompt?.(request.body, client.name);
  if (provider === undefined) return answerLocally(request, { client, endpoint, exchange });
  const { streaming } = request;
  const to: ProviderCall = { wire: provider.name, model, streaming, tags };
  if (debug !== undefined) traceDetected(debug, { client, provider, identity, model, streaming });
  // Read before printing, which may change the client's object.
  const facts = { requestModel: model, provider: node.identity, streaming, ...paramsOf(request.body) };
  const hidesUsage = client === provider && streaming && !asksForUsage(client, request);
  const inputBytes = (): number =>
    textBytes(client.client?.texts.requestTexts(request.body) ?? client.inputTexts?.(request.body));
  const isFree = client.answer !== undefined;
  const ledger = isFree ? openFreeLedger(exchange, facts) : await openLedger(exchange, facts, inputBytes, catalog);
  const guards = isFree ? undefined : guardsOf(endpoint, client, exchange);
  // Without guards nothing is awaited: each wait costs a turn of the queue of promises.
  const rejection = guards === undefined ? undefined : await guards.checkRequest(request.body);
  if (rejection !== undefined) {
    ledger.settle("failed");
    return rejection;
  }
  const ownForm = operationForm(client, provider, endpoint.provider.ownForm?.(to, node));
  const { body, toolNames, losses } = printProviderRequest(request, {
    ownForm,
    client,
    provider,
    endpoint,
    call: to,
    headers: source.requestHeaders,
    exchange,
    tags,
    // Its own object was parsed from the body, or from one that a transformation has made of it.
    sizeHint: Buffer.isBuffer(exchange.requestBody) ? exchange.requestBody.length : 0,
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
    ownForm,
    hidesUsage,
    writesList: request.wantsList === true,
    ledger,
    guards,
    streaming,
    limitBytes: exchange.responseLimitBytes,
  };
  const call = { endpoint, to, operation: OPERATIONS[provider.name], out, method: "POST", body, ledger };
  return sendCall({ ...call, read: (answer) => readReply(answer, context) }, exchange, deps.upstream);
}

interface DetectedRequest {
  readonly client: ChatFormat;
  readonly provider: ChatFormat;
  readonly identity: string;
  readonly model: string;
  readonly streaming: boolean;
}

function traceDetected(debug: DebugTrace, { client, provider, identity, model, streaming }: DetectedRequest): void {
  const formats = { provider: identity, inputFormat: client.name, upstreamRouteType: provider.name };
  debug.record({ type: "llmRequestDetected", ...formats, requestModel: model, streaming });
  // Only a stream in another format than the client's is translated while it passes.
  if (streaming && client !== provider)
    debug.record({ type: "llmStreamingTranslation", ...formats, streamFormat: provider.name });
}

/** A body that a transformation has written names the model that the transformation wants. */
function bodyToKeep({ renamed }: ProviderChoice, exchange: RoutedExchange, out: Outgoing | undefined): Body {
  if (out !== undefined && out.body !== exchange.requestBody) return out.body;
  return renamed ?? exchange.requestBody;
}

interface LocalAnswer {
  readonly client: ChatFormat;
  readonly endpoint: Endpoint;
  readonly exchange: RoutedExchange;
}

/** Answers a request that the provider cannot. @throws ProxyError llm_conversion_unsupported */
async function answerLocally(
  { body, model }: LlmRequest & { readonly model: string },
  { client, endpoint, exchange }: LocalAnswer,
): Promise<Reply> {
  if (client.answer === undefined) throw new ProxyError("llm_conversion_unsupported");
  const facts = { requestModel: model, provider: endpoint.node.identity, streaming: false };
  const ledger = openFreeLedger(exchange, facts);
  const answer = await client.answer(body, model);
  ledger.record(client.usage(answer));
  const reply = {
    status: 200,
    headers: new HeaderList(["content-type", "application/json"]),
    body: Buffer.from(JSON.stringify(answer)),
    upstream: false,
  };
  await endpoint.transformation?.answered(exchange, reply);
  return reply;
}

/** @returns undefined when no guards are configured, and for formats that are no conversation */
function guardsOf({ guards }: Endpoint, { client }: ChatFormat, exchange: RoutedExchange): RequestGuards | undefined {
  if (guards === undefined || client === undefined) return undefined;
  return new RequestGuards(guards, client, exchange);
}

/** Returns the format that `routes` gives the path, or the one whose clients call it where no routes are configured. */
function findClientFormat(exchange: RoutedExchange, { findRouteType }: AiPolicies): ClientFormat {
  const path = pathOf(exchange.target);
  if (findRouteType === undefined) return clientFormatOf(path);
  exchange.clientFormat = formatOfRouteType(findRouteType(path));
  return clientFormatOf(path, exchange.clientFormat);
}

/** @throws ProxyError llm_format_unserved */
function requireServed({ name, format }: ClientFormat): ChatFormat {
  if (format !== undefined) return format;
  throw new ProxyError("llm_format_unserved", {
    text: `failed to process LLM request: ${name} requests are not served yet`,
  });
}

/** Values of gen_ai.operation.name (OpenTelemetry semantic conventions). */
const OPERATIONS: Readonly<Record<FormatName, string>> = {
  Completions: "chat",
  Messages: "chat",
  Responses: "chat",
  Gemini: "chat",
  Converse: "chat",
  Embeddings: "embeddings",
  EmbedContent: "embeddings",
  BatchEmbedContents: "embeddings",
  Rerank: "rerank",
  MessagesTokenCount: "count_tokens",
  GeminiTokenCount: "count_tokens",
};

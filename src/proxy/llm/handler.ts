/**
 * The end of the pipeline for AI backends. In: an exchange with a chat completions request. Out: a reply in the same
 * format, whatever the chosen provider speaks; token budgets charged; the `llm` root filled. Retries are not made here.
 */
import type { AiBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendDeps, BackendHandler } from "../backends/handler.ts";
import type { UpstreamRequest, UpstreamResponse } from "../backends/upstream.ts";
import { fixedVersion } from "../backends/version.ts";
import { ProxyError } from "../errors.ts";
import type { Exchange } from "../pipeline/exchange.ts";
import { readAnswer } from "./answer.ts";
import { compileEndpoint, type Endpoint } from "./endpoint.ts";
import { completions } from "./formats/completions.ts";
import type { LlmRequest } from "./formats/format.ts";
import type { JsonObject } from "./json.ts";
import { readRequest } from "./request.ts";
import { selectProvider } from "./select.ts";
import { openLedger } from "./usage.ts";

/** @throws ConfigError when a provider is unknown */
export function createLlmHandler(ai: AiBackend, deps: BackendDeps): BackendHandler {
  const groups = ai.groups.map(({ providers }) => providers.map((node) => compileEndpoint(node, deps)));
  return async function llm(exchange) {
    if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to a model" });
    const endpoint = selectProvider(groups);
    if (endpoint === undefined) throw new ProxyError("backend_invalid", { detail: "no provider is configured" });
    const { node, wire } = endpoint;
    exchange.backend = { name: exchange.backend?.name ?? node.name, type: "ai", protocol: "llm" };
    if (wire === undefined) throw new ProxyError("llm_conversion_unsupported");
    const request = completions.parse(await readRequest(exchange));
    const model = node.model === "" ? request.model : node.model;
    if (model === undefined || model === "")
      throw new ProxyError("llm_model_missing", {
        text: "failed to process LLM request: missing field: model not specified",
      });
    const { streaming } = request;
    const body = printRequest(endpoint, request, model, deps);
    const ledger = await openLedger(exchange, { requestModel: model, provider: node.identity, streaming });
    const response = await send(endpoint, exchange, body, deps);
    return readAnswer(response, { ...wire, ledger, limitBytes: exchange.responseLimitBytes });
  };
}

function printRequest(
  { provider, wire, node }: Endpoint,
  request: LlmRequest,
  model: string,
  deps: BackendDeps,
): Buffer {
  const body: JsonObject = request.body;
  body["model"] = model;
  // Without it a stream tells no usage, and budgets could not be charged.
  if (request.streaming) body["stream_options"] ??= { include_usage: true };
  provider.quirks(body);
  if (wire?.converter === undefined) return completions.print(body);
  const converted = wire.converter.request(body);
  if (converted.dropped.length > 0)
    deps.log.debug("fields that the provider cannot express were left out", {
      provider: node.name,
      fields: converted.dropped.join(" "),
    });
  return wire.format.print(converted.body);
}

async function send(
  endpoint: Endpoint,
  exchange: Exchange,
  body: Buffer,
  deps: BackendDeps,
): Promise<UpstreamResponse> {
  const { path, headers } = endpoint.address(exchange);
  const target = endpoint.target();
  const { health, limits } = endpoint;
  const startedAtMs = performance.now();
  exchange.calledAtMs ??= startedAtMs;
  health.begin();
  exchange.onDone(() => health.end());
  try {
    const response = await deps.upstream.send(target, {
      version: fixedVersion(limits?.version) ?? "negotiated",
      method: "POST",
      path,
      headers,
      body,
      ...deadlineOf(exchange, startedAtMs, limits?.requestTimeoutMs || Infinity),
      abort: exchange,
    });
    exchange.answeredAtMs = performance.now();
    health.sample(response.status < 500, exchange.answeredAtMs - startedAtMs);
    return response;
  } catch (error) {
    health.sample(false, performance.now() - startedAtMs);
    throw error;
  }
}

/** Whichever ends first: the request's own deadline or the limit of one attempt. */
function deadlineOf(
  { deadlineAtMs, backendTimeoutMs }: Exchange,
  startedAtMs: number,
  timeoutMs: number,
): Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode"> {
  const attemptAtMs = startedAtMs + Math.min(backendTimeoutMs ?? Infinity, timeoutMs);
  if (attemptAtMs < (deadlineAtMs ?? Infinity)) return { deadlineAtMs: attemptAtMs, timeoutCode: "backend_timeout" };
  return { deadlineAtMs, timeoutCode: "request_timeout" };
}

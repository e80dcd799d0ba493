/**
 * Sends one call to a provider and turns its response into the reply: the attempt that health and retries look at, the
 * span, the signature and the time limit. The LLM handler and the operations use it.
 */
import { Attempt } from "../../backends/attempt.ts";
import { bodyToSign } from "../../backends/auth/body-to-sign.ts";
import { deadlineOfCall } from "../../backends/call-deadline.ts";
import type { Outgoing } from "../../backends/transformation.ts";
import type { Body } from "../../exchange/body.ts";
import { discard } from "../../exchange/discard.ts";
import type { DebugTrace } from "../../exchange/debug-trace.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import { WatchedBody } from "../../exchange/watched-body.ts";
import { beginCallSpan, type CallHead } from "../../observability/tracing/call-span.ts";
import type { OutboundSpan } from "../../observability/tracing/outbound-span.ts";
import type { RequestTrace } from "../../observability/tracing/request-trace.ts";
import { nameOfTarget } from "../../upstream/dial/connection-settings.ts";
import { fixedVersion } from "../../upstream/http-version.ts";
import { sendSigned } from "../../upstream/send-signed.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse } from "../../upstream/upstream.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Ledger } from "./ledger.ts";
import type { ProviderCall } from "../providers/provider.ts";

/** One call to a provider. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly to: ProviderCall;
  /** Value of gen_ai.operation.name (OpenTelemetry semantic conventions). */
  readonly operation: string;
  /** The client's request after a transformation; undefined when there is none. */
  readonly out: Outgoing | undefined;
  readonly method: string;
  readonly body: Body;
  readonly upgrade?: string | undefined;
  /** undefined for a call that no budget pays for. */
  readonly ledger: Ledger | undefined;
  readonly read: (answer: UpstreamResponse) => Reply | Promise<Reply>;
}

export async function sendCall(call: Call, exchange: RoutedExchange, upstream: Upstream): Promise<Reply> {
  const { endpoint, to, out, method, upgrade, ledger } = call;
  const { target, record, auth: serviceAuth } = endpoint.spot(to);
  const addressed = endpoint.address(to, exchange, out);
  const { path: ownPath, headers } = addressed instanceof Promise ? await addressed : addressed;
  // Policies on a Service behind the provider have the last word: they may refuse, and their credential is written last.
  const serviceCall = { caller: exchange, host: target.host };
  const path = serviceAuth === undefined ? ownPath : await serviceAuth.place(serviceCall, headers, ownPath);
  const body = serviceAuth?.sign === undefined ? call.body : await bodyToSign(exchange, call.body);
  exchange.endpoint = nameOfTarget(target);
  const { limits } = endpoint;
  const attempt = new Attempt(exchange, endpoint.record, endpoint.rule, false);
  if (record !== undefined) attempt.alsoTell(record);
  if (exchange.trace !== undefined) attempt.span = spanOf(call, exchange.trace, exchange, { method, path, headers });
  ledger?.sent();
  const { debug } = exchange;
  try {
    const signing =
      serviceAuth?.sign === undefined
        ? { auth: endpoint.auth, call: endpoint.authCall(to, exchange) }
        : { auth: serviceAuth, call: serviceCall };
    const request: UpstreamRequest = {
      version: upgrade === undefined ? (fixedVersion(limits?.version) ?? "negotiated") : "http1",
      method,
      path,
      headers,
      body,
      upgrade,
      ...deadlineOfCall(exchange, performance.now(), limits?.requestTimeoutMs || Infinity),
      abort: exchange,
    };
    const response = await sendSigned(
      { ...signing, request: { method, path, headers, body: Buffer.isBuffer(body) ? body : EMPTY } },
      () => {
        if (debug !== undefined) traceRequest(debug, request);
        return upstream.send(target, request);
      },
      discard,
    );
    const answer = debug === undefined ? { ...response } : traced(response, debug);
    if (attempt.readsBody) await attempt.answeredWithBody(answer);
    else attempt.answered(answer);
    const reply = await call.read(answer);
    if (endpoint.transformation !== undefined) await endpoint.transformation.answered(exchange, reply);
    return reply;
  } catch (error) {
    attempt.failed(error);
    ledger?.settle("failed");
    throw error;
  }
}

/** Shows the request as it leaves: signed, and again when a corrected clock signs it once more. */
function traceRequest(debug: DebugTrace, { method, path, headers, body }: UpstreamRequest): void {
  debug.outgoing("backend auth", { method, path, headers }, true);
  debug.outgoing("final request", { method, path, headers }, true);
  if (Buffer.isBuffer(body)) debug.body("final request", body);
}

/** Shows the response of the provider, before it is translated. */
function traced(response: UpstreamResponse, debug: DebugTrace): UpstreamResponse {
  const { status, headers, body } = response;
  debug.response("raw response", { status, headers });
  if (body === null) return { ...response };
  const watched = new WatchedBody(body, () => TRACED_BYTES);
  debug.bodyLater("llm raw response", () => watched.prefix);
  return { ...response, body: watched };
}

/** Start of a provider's answer that operators see. */
const TRACED_BYTES = 256 * 1024;
const EMPTY = Buffer.alloc(0);
const MAX_MODEL = 256;

function spanOf(
  { endpoint, to, operation }: Call,
  trace: RequestTrace,
  exchange: RoutedExchange,
  head: CallHead,
): OutboundSpan | undefined {
  // The client may have chosen the name, so its length is limited.
  const model = to.model.slice(0, MAX_MODEL);
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

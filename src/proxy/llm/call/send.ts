/**
 * Sends one call to a provider and turns its response into the reply: the attempt that health and retries look at, the
 * span, the signature and the time limit. The LLM handler and the operations use it.
 */
import { STATUS_CODES } from "node:http";
import { HeaderList } from "../../../lib/header-list.ts";
import { pathOf } from "../../../lib/network/request-target.ts";
import { Attempt } from "../../backends/attempt.ts";
import { bodyToSign } from "../../backends/auth/body-to-sign.ts";
import type { RuledEndpoint } from "../../backends/handler.ts";
import { deadlineOfCall } from "../../backends/call-deadline.ts";
import type { Outgoing } from "../../backends/transformation.ts";
import type { Body } from "../../exchange/body.ts";
import { discard } from "../../exchange/discard.ts";
import type { DebugTrace } from "../../exchange/debug-trace.ts";
import type { Side } from "../../policies/ext-proc/messages.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import { WatchedBody } from "../../exchange/watched-body.ts";
import { beginCallSpan, type CallHead } from "../../observability/tracing/call-span.ts";
import type { OutboundSpan } from "../../observability/tracing/outbound-span.ts";
import type { RequestTrace } from "../../observability/tracing/request-trace.ts";
import { nameOfTarget, type UpstreamTarget } from "../../upstream/dial/connection-settings.ts";
import { sendSigned } from "../../upstream/send-signed.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse } from "../../upstream/upstream.ts";
import { clientFormatOf } from "../client-formats/index.ts";
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
  const found = findSpot(call, exchange);
  const spot = found instanceof Promise ? await found : found;
  const addressed = endpoint.address(to, exchange, out);
  const { path, headers } = addressed instanceof Promise ? await addressed : addressed;
  const body = endpoint.auth?.sign === undefined ? call.body : await bodyToSign(exchange, call.body);
  const attempt = new Attempt(exchange, endpoint.record, endpoint.rule, false);
  if (exchange.trace !== undefined) attempt.span = spanOf(call, exchange.trace, exchange, { method, path, headers });
  ledger?.sent();
  const { debug } = exchange;
  try {
    const signing = { auth: endpoint.auth, call: endpoint.authCall(to, exchange) };
    const send = (place: UpstreamTarget, sent: Body, behind: RuledEndpoint | undefined): Promise<UpstreamResponse> => {
      exchange.endpoint = nameOfTarget(place);
      if (behind !== undefined) attempt.alsoTell(behind);
      const request: UpstreamRequest = {
        version: upgrade === undefined ? (endpoint.version ?? "negotiated") : "http1",
        method,
        path,
        headers,
        body: sent,
        upgrade,
        ...deadlineOfCall(exchange, performance.now(), endpoint.timeoutMs),
        abort: exchange,
      };
      return sendSigned(
        { ...signing, request: { method, path, headers, body: Buffer.isBuffer(sent) ? sent : EMPTY } },
        () => {
          if (debug !== undefined) traceRequest(debug, request);
          return upstream.send(place, request);
        },
        discard,
      );
    };
    let response: UpstreamResponse;
    if (spot.pool === undefined) response = await send(spot.target, body, spot.state);
    else {
      const side = outgoingSide({ method, path, headers, body }, exchange, endpoint);
      const picked = await spot.pool.call(exchange, side, async (place) => ({
        ...(await send(spot.target(place), side.body, spot.ruled(place))),
        upstream: true,
      }));
      if (picked.own !== undefined) {
        attempt.answered(picked.own);
        ledger?.settle("failed");
        return printRefusal(picked.own, exchange);
      }
      response = picked.reply;
    }
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

/** A provider whose endpoints are all gone has failed, so that health rules and retries lead to the next one. */
function findSpot({ endpoint, to }: Call, exchange: RoutedExchange): ReturnType<Endpoint["spot"]> {
  try {
    return endpoint.spot(to, exchange);
  } catch (error) {
    new Attempt(exchange, endpoint.record, endpoint.rule, false).failed(error);
    throw error;
  }
}

/** Fields that providers read credentials from; an endpoint picker has no use for them. */
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "x-api-key", "api-key", "x-goog-api-key"]);

/**
 * Returns the request as it leaves for the provider, in the form that an endpoint picker reads and changes. The picker
 * sees no credential of the provider.
 */
function outgoingSide(
  { method, path, headers, body }: CallHead & { readonly body: Body },
  { host }: RoutedExchange,
  { auth, credentialFields }: Endpoint,
): Side {
  const shown: string[] = [];
  for (let at = 0; at < headers.raw.length; at += 2) {
    const name = headers.raw[at] as string; // names and values alternate
    const field = name.toLowerCase();
    if (!CREDENTIALS.has(field) && !credentialFields.has(field)) shown.push(name, headers.raw[at + 1] as string);
  }
  const shownPath = auth?.writesQuery === true ? pathOf(path) : path;
  const pseudo = [":method", method, ":scheme", "http", ":authority", host, ":path", shownPath];
  return { kind: "request", target: { headers, setPseudo: () => undefined }, pseudo, shown, body };
}

/** Prints what an endpoint picker answers in place of a model, in the format of the client. */
function printRefusal({ status, body }: Reply, exchange: RoutedExchange): Reply {
  const text = Buffer.isBuffer(body) ? body.toString("utf8", 0, MAX_REFUSAL) : "";
  const message = text === "" ? (STATUS_CODES[status] ?? "Error") : text;
  const { printError } = clientFormatOf(pathOf(exchange.target), exchange.clientFormat);
  return {
    status,
    headers: new HeaderList(["content-type", "application/json"]),
    body: Buffer.from(JSON.stringify(printError({ message, type: undefined }, status))),
    upstream: true,
  };
}

const MAX_REFUSAL = 1_024;

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

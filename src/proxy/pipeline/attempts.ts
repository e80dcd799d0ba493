/**
 * Calls the backend of one request and calls it again when the `retry` of its route or policy says so (GEP-1731). Used
 * by the terminal of a rule (router/bind-rule.ts).
 *
 * An attempt repeats everything that belongs to a call: the choice of an endpoint, the credential, the conversion of a
 * body. The policies of the request run once, before the first attempt. A streamed body is recorded while it is sent
 * (exchange/recorded-body.ts), so the first attempt never waits for the end of the body.
 */
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError, type ProxyErrorCode } from "../exchange/errors.ts";
import type { BackendHandler } from "../backends/handler.ts";
import { discard } from "../exchange/discard.ts";
import type { RoutedExchange, Reply, RetryPlan } from "../exchange/exchange.ts";
import { pause } from "../exchange/pause.ts";
import { RecordedBody } from "../exchange/recorded-body.ts";

/**
 * Longest request body that is kept for another attempt. A longer one streams, and its call is made once. Requests to
 * models are held whole in any case, because they are read before they are sent, so they are repeated at every length.
 */
const KEPT_BYTES = 64 * 1024;
const ATTEMPT_HEADER = "x-retry-attempt";

/** Errors that occurred before the upstream answered; other errors are final. */
const RETRIABLE: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "backend_timeout",
  "upstream_unreachable",
  "upstream_broken",
  "picker_failed",
  "endpoint_unavailable",
]);

interface Slot {
  readonly handler: BackendHandler;
}

export function callBackend(exchange: RoutedExchange, slot: Slot): Promise<Reply> {
  // Upstreams trust this header, so the client must not be able to set it.
  exchange.requestHeaders.remove(ATTEMPT_HEADER);
  const { retry } = exchange;
  if (retry === undefined || retry.attempts === 0) return slot.handler(exchange);
  return retrying(exchange, slot, retry);
}

async function retrying(exchange: RoutedExchange, slot: Slot, plan: RetryPlan): Promise<Reply> {
  const { requestBody } = exchange;
  const isLong = isTooLong(exchange);
  const isFlow = requestBody !== null && !Buffer.isBuffer(requestBody);
  const record = isFlow && !isLong ? new RecordedBody(requestBody, KEPT_BYTES) : undefined;
  exchange.tried = [];
  try {
    for (let made = 1; ; made++) {
      // An attempt may have buffered the body already; the next attempt sends that Buffer.
      if (record !== undefined && !Buffer.isBuffer(exchange.requestBody)) exchange.requestBody = record.begin();
      const outcome = await attempt(exchange, slot.handler);
      const isRepeatable = isHeld(exchange) || (!isLong && mayRepeat(outcome, record));
      if (made > plan.attempts || !isRepeatable || !(await wantsAnother(outcome, plan))) return settled(outcome);
      exchange.attempt?.discard();
      if ("reply" in outcome) discard(outcome.reply);
      if (plan.backoffMs > 0) await pause(exchange, plan.backoffMs);
      exchange.requestHeaders.set(ATTEMPT_HEADER, String(made));
    }
  } finally {
    record?.close();
  }
}

type Outcome = { readonly reply: Reply } | { readonly error: unknown };

async function attempt(exchange: RoutedExchange, handler: BackendHandler): Promise<Outcome> {
  try {
    return { reply: await handler(exchange) };
  } catch (error) {
    return { error };
  }
}

function settled(outcome: Outcome): Reply {
  if ("reply" in outcome) return outcome.reply;
  throw outcome.error;
}

/** Whether the handler of LLM backends has read the whole body. */
function isHeld({ backend, requestBody }: RoutedExchange): boolean {
  return backend?.protocol === "llm" && Buffer.isBuffer(requestBody);
}

/**
 * Returns false for an answer that came before the end of the request body: the upstream answered without the rest, so
 * the answer stands.
 */
function mayRepeat(outcome: Outcome, record: RecordedBody | undefined): boolean {
  if (record === undefined) return true;
  return record.isRepeatable && (record.isComplete || "error" in outcome);
}

async function wantsAnother(outcome: Outcome, plan: RetryPlan): Promise<boolean> {
  // A reply of the gateway itself, such as the rejection of a guard, would be the same again.
  if ("reply" in outcome) return outcome.reply.upstream && plan.wants(outcome.reply);
  const { error } = outcome;
  if (!(error instanceof ProxyError)) return false;
  if (RETRIABLE.has(error.code)) return true;
  // A model's response that cannot be used counts as a response with the status of its error.
  const unusable = { status: error.status, headers: new HeaderList(), body: null, upstream: true };
  return error.code === "llm_response_invalid" && plan.wants(unusable);
}

function isTooLong({ requestHeaders, requestBody }: RoutedExchange): boolean {
  if (requestBody === null) return false;
  if (Buffer.isBuffer(requestBody)) return requestBody.length > KEPT_BYTES;
  return Number(requestHeaders.get("content-length") ?? 0) > KEPT_BYTES;
}

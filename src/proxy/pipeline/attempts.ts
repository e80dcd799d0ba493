/**
 * The attempts of one request at its backend. Policies of the request are not repeated; everything that belongs to a
 * call is: the choice of an endpoint, the credential, the conversion of a body.
 */
import { ProxyError, type ProxyErrorCode } from "../errors.ts";
import type { BackendHandler } from "../backends/handler.ts";
import type { Exchange, Reply, RetryPlan } from "./exchange.ts";
import { pause } from "./pause.ts";

/** A longer request body cannot be sent twice: it streams, and its call is made once. */
const KEPT_BYTES = 64 * 1024;
const ATTEMPT_HEADER = "x-retry-attempt";

/** The calls that failed before an answer came. */
const RETRIABLE: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "backend_timeout",
  "upstream_unreachable",
  "upstream_broken",
]);

export function callBackend(exchange: Exchange, slot: { readonly handler: BackendHandler }): Promise<Reply> {
  return exchange.retry === undefined ? slot.handler(exchange) : retrying(exchange, slot, exchange.retry);
}

async function retrying(
  exchange: Exchange,
  slot: { readonly handler: BackendHandler },
  plan: RetryPlan,
): Promise<Reply> {
  const attempts = (await canBeSentAgain(exchange)) ? plan.attempts : 0;
  for (let made = 1; ; made++) {
    const outcome = await attempt(exchange, slot.handler);
    const isLast = made > attempts;
    if (isLast || !(await wantsAnother(outcome, plan))) return settled(outcome);
    if ("reply" in outcome) discard(outcome.reply);
    if (plan.backoffMs > 0) await pause(exchange, plan.backoffMs);
    exchange.requestHeaders.set(ATTEMPT_HEADER, String(made));
  }
}

type Outcome = { readonly reply: Reply } | { readonly error: unknown };

async function attempt(exchange: Exchange, handler: BackendHandler): Promise<Outcome> {
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

async function wantsAnother(outcome: Outcome, plan: RetryPlan): Promise<boolean> {
  if ("reply" in outcome) return plan.wants(outcome.reply);
  return outcome.error instanceof ProxyError && RETRIABLE.has(outcome.error.code);
}

async function canBeSentAgain(exchange: Exchange): Promise<boolean> {
  if (exchange.requestBody === null) return true;
  return (await exchange.bufferRequestBody(KEPT_BYTES)) !== undefined;
}

function discard({ body, tunnel }: Reply): void {
  tunnel?.stream.destroy();
  if (body !== null && !Buffer.isBuffer(body)) body.destroy();
}

/** The deadline of a request to an upstream: a timer that aborts it in any state. All kinds of calls use it. */
import { ProxyError } from "../exchange/errors.ts";
import type { Abortable } from "../exchange/exchange.ts";
import type { UpstreamRequest } from "./upstream.ts";

/** @returns the timer to clear when the request ends earlier; undefined when the request has no deadline */
export function startDeadline(
  { deadlineAtMs, timeoutCode }: Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode">,
  call: Abortable,
): NodeJS.Timeout | undefined {
  if (deadlineAtMs === undefined) return undefined;
  return setTimeout(expire, Math.max(0, deadlineAtMs - performance.now()), call, timeoutCode);
}

function expire(call: Abortable, code: UpstreamRequest["timeoutCode"]): void {
  call.abort(new ProxyError(code));
}

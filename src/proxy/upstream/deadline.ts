/** When a request to an upstream must be over, whatever it is doing then. */
import { ProxyError } from "../errors.ts";
import type { Abortable } from "../pipeline/exchange.ts";
import type { UpstreamRequest } from "./upstream.ts";

/** @returns what to clear when the request is over before; undefined for one without a deadline */
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

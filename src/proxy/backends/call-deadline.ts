/** The time limit of one call to a backend. Handlers that make several calls for a request use it. */
import type { RoutedExchange } from "../exchange/exchange.ts";
import type { UpstreamRequest } from "../upstream/upstream.ts";

/** Returns the earlier of the request's deadline and the limit of one attempt. @param timeoutMs Infinity for none */
export function deadlineOfCall(
  { deadlineAtMs, backendTimeoutMs }: Pick<RoutedExchange, "deadlineAtMs" | "backendTimeoutMs">,
  startedAtMs: number,
  timeoutMs: number,
): Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode"> {
  const attemptAtMs = startedAtMs + Math.min(backendTimeoutMs ?? Infinity, timeoutMs);
  if (attemptAtMs < (deadlineAtMs ?? Infinity)) return { deadlineAtMs: attemptAtMs, timeoutCode: "backend_timeout" };
  return { deadlineAtMs, timeoutCode: "request_timeout" };
}

/** A finished request as the metrics count it (observability.md 2). What is not known is "unknown". */
import type { LlmSample, RequestSample } from "../telemetry/metrics.ts";
import type { Outcome } from "./pipeline/exchange.ts";
import type { HttpExchange } from "./pipeline/http-exchange.ts";
import { labelsOf } from "./reports/labels.ts";

export function sampleOf(
  exchange: HttpExchange,
  outcome: Outcome,
  more: { readonly reason: string; readonly status: number; readonly llm: LlmSample | undefined },
): RequestSample {
  const { listener, route, backend, startedAtMs, calledAtMs, answeredAtMs, tried } = exchange;
  const durationSeconds = outcome.durationMs / 1000;
  return {
    backend: backend?.name ?? "unknown",
    protocol: backend?.protocol ?? "unknown",
    method: exchange.method,
    status: more.status,
    reason: more.reason,
    bind: listener.bind,
    gateway: listener.gateway === "" ? "unknown" : `${listener.namespace}/${listener.gateway}`,
    listener: listener.name === "" ? "unknown" : listener.name,
    route: route === undefined ? "unknown" : `${route.namespace}/${route.name}`,
    routeRule: route?.rule ?? "unknown",
    extra: labelsOf(exchange.reports.labels, exchange),
    durationSeconds,
    requestProcessingSeconds: calledAtMs === undefined ? undefined : (calledAtMs - startedAtMs) / 1000,
    responseProcessingSeconds:
      answeredAtMs === undefined ? undefined : durationSeconds - (answeredAtMs - startedAtMs) / 1000,
    responseBytes: outcome.responseBytes,
    retries: tried === undefined ? 0 : Math.max(0, tried.length - 1),
    llm: more.llm,
  };
}

/** Describes a finished request for the metrics (docs/reference/metrics.md). Labels without a value are "unknown". */
import type { RequestSample } from "../../telemetry/metrics.ts";
import type { Outcome, ReportedExchange } from "../exchange/exchange.ts";
import { labelsOf, type MetricLabel } from "./labels.ts";
import type { RequestStreamInfo } from "./request-stream-info.ts";

export function sampleOf(
  exchange: ReportedExchange,
  labels: readonly MetricLabel[],
  outcome: Outcome,
  info: RequestStreamInfo,
): RequestSample {
  const { listener, route, backend, startedAtMs, calledAtMs, answeredAtMs } = exchange;
  const durationSeconds = outcome.durationMs / 1000;
  return {
    backend: backend?.name ?? "unknown",
    protocol: backend?.protocol ?? "unknown",
    method: exchange.method,
    status: info.status,
    reason: info.outcomeReason,
    bind: listener.bind,
    gateway: listener.gateway === "" ? "unknown" : `${listener.namespace}/${listener.gateway}`,
    listener: listener.name === "" ? "unknown" : listener.name,
    route: route === undefined ? "unknown" : `${route.namespace}/${route.name}`,
    routeRule: route?.rule ?? "unknown",
    extra: labelsOf(labels, exchange),
    durationSeconds,
    requestProcessingSeconds: calledAtMs === undefined ? undefined : (calledAtMs - startedAtMs) / 1000,
    responseProcessingSeconds:
      answeredAtMs === undefined ? undefined : durationSeconds - (answeredAtMs - startedAtMs) / 1000,
    responseBytes: outcome.responseBytes,
    retries: info.retries,
    llm: info.llm?.sample,
  };
}

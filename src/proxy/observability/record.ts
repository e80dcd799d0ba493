/** Reports finished requests: metrics, trace, and access log. The proxy calls it when an exchange has finished. */
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { Metrics, RequestSample } from "../../telemetry/metrics.ts";
import type { Outcome, ReportedExchange } from "../exchange/exchange.ts";
import { addConversation } from "./conversation.ts";
import type { Ids } from "./ids.ts";
import type { Reports } from "./observability.ts";
import { RequestStreamInfo } from "./stream-info/request-stream-info.ts";
import { labelsOf, type MetricLabel } from "./labels.ts";

export interface Telemetry {
  readonly accessLog?: AccessLog;
  readonly metrics?: Metrics;
}

/** @param secretParametersOf returns the query parameters whose values are masked for a Bind */
export function createRecorder(
  telemetry: Telemetry | undefined,
  ids: Ids,
  secretParametersOf: (bind: string) => ReadonlySet<string>,
): (exchange: ReportedExchange & { readonly reports: Reports }, outcome: Outcome) => void {
  const { accessLog, metrics } = telemetry ?? {};
  const isHeard = accessLog !== undefined || metrics !== undefined;
  return (exchange, outcome) => {
    const { trace } = exchange;
    const { accessLog: report, otlpLog, tracing, labels, readsConversation } = exchange.reports;
    if (!isHeard && otlpLog === undefined && trace === undefined) return;
    if (readsConversation) addConversation(exchange);
    const info = new RequestStreamInfo(exchange, outcome, ids, secretParametersOf);
    if (trace !== undefined) tracing?.finish(trace, exchange, info);
    metrics?.request(sampleOf(exchange, labels, outcome, info));
    otlpLog?.record(info);
    if (accessLog !== undefined && accessLog.level !== "off" && report.wants(exchange)) accessLog.write(report, info);
  };
}

/** Describes a finished request for the metrics (docs/reference/metrics.md). Labels without a value are "unknown". */
function sampleOf(
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
    agent: info.agent?.sample,
    mcp: info.mcp?.sample,
    guardChecks: exchange.guardChecks?.counts,
  };
}

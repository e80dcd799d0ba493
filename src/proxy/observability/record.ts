/** Reports finished requests: metrics, trace, and access log. The proxy calls it when an exchange has finished. */
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Outcome, ReportedExchange } from "../exchange/exchange.ts";
import { sampleOf } from "./record-metrics.ts";
import { addConversation } from "./conversation.ts";
import type { Ids } from "./ids.ts";
import type { Reports } from "./observability.ts";
import { RequestStreamInfo } from "./request-stream-info.ts";

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

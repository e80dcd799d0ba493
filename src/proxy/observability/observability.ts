/**
 * The reports of a Bind (access log, tracing, metric labels), compiled from its merged policies when one of them
 * changes. Every exchange of the Bind carries the result. Expressions of reports run after the end of a request, in the
 * phase "log".
 */
import type { AccessLog, MetricLabels, Tracing } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Reads } from "../../cel/expression.ts";
import { READS_NOTHING, unionOfReads } from "../../cel/reads.ts";
import { compileLogReport, EVERYTHING, type LogReport } from "./access-log.ts";
import { readsConversation } from "./conversation.ts";
import { compileLabels, type MetricLabel } from "./labels.ts";
import { compileOtlpLog, type OtlpLog } from "./otlp-log.ts";
import { TracingReport } from "./tracing.ts";
import type { ReportDeps } from "./report-deps.ts";

export interface Reports {
  /** Union of what the expressions of all reports read, so that bodies are kept for them. */
  readonly reads: Reads;
  /** True when a report reads the conversation of LLM requests. */
  readonly readsConversation: boolean;
  readonly accessLog: LogReport;
  /** The log for a collector; undefined when none is configured. */
  readonly otlpLog: OtlpLog | undefined;
  /** undefined when no request is traced. */
  readonly tracing: TracingReport | undefined;
  /** Additional labels of the metrics about requests. */
  readonly labels: readonly MetricLabel[];
}

/** The merged policies of a Bind. */
export interface ReportParts {
  readonly accessLog: AccessLog | undefined;
  readonly tracing: Tracing | undefined;
  readonly metrics: MetricLabels | undefined;
}

/** The reports of a Bind without a policy: every request is logged, without traces or labels. */
export const PLAIN_REPORTS: Reports = {
  reads: READS_NOTHING,
  readsConversation: false,
  accessLog: EVERYTHING,
  otlpLog: undefined,
  tracing: undefined,
  labels: [],
};

export function compileReports({ accessLog, tracing, metrics }: ReportParts, deps: ReportDeps): Reports {
  if (accessLog === undefined && tracing === undefined && metrics === undefined) return PLAIN_REPORTS;
  const late: Reads[] = [];
  const collecting: ReportDeps = {
    ...deps,
    expression(source, place) {
      const expression = deps.expression(source, place);
      if (place === "log") late.push(expression.reads);
      return expression;
    },
  };
  const parts = {
    accessLog: accessLog === undefined ? EVERYTHING : compileLogReport(accessLog, collecting),
    otlpLog: compileOtlpLog(accessLog?.otlp, collecting),
    tracing: tracing === undefined ? undefined : new TracingReport(tracing, collecting),
    labels: metrics === undefined ? [] : compileLabels(metrics, collecting),
  };
  const reads = unionOfReads(late);
  return { ...parts, reads, readsConversation: readsConversation(reads) };
}

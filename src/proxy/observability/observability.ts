/**
 * What a Bind reports about its requests and connections (frontend.md 1.5 to 1.7), compiled when a policy changes. In: the
 * merged settings. Out: an object that every exchange of the Bind carries. Expressions run when all is over, in place "log".
 */
import type { AccessLog, MetricLabels, Tracing } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression, Reads } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/phases.ts";
import { READS_NOTHING, unionOfReads } from "../../cel/reads.ts";
import type { Scope } from "../../cel/scope.ts";
import { compileLogReport, EVERYTHING, type LogReport } from "./access-log.ts";
import { readsConversation } from "./conversation.ts";
import type { Exporters } from "./exporters.ts";
import { compileLabels, type MetricLabel } from "./labels.ts";
import { compileOtlpLog, type OtlpLog } from "./otlp-log.ts";
import { TracingReport } from "./tracing/tracing.ts";

export interface Reports {
  /** By whatever runs when all is over: what has to be kept until then. */
  readonly reads: Reads;
  /** What was said in requests of LLMs. */
  readonly readsConversation: boolean;
  readonly accessLog: LogReport;
  /** The same for a collector; undefined: none wants it. */
  readonly otlpLog: OtlpLog | undefined;
  /** undefined: no request is traced. */
  readonly tracing: TracingReport | undefined;
  /** More labels of the metrics about a request. */
  readonly labels: readonly MetricLabel[];
}

/** What the policies of a Bind say, merged. */
export interface ReportParts {
  readonly accessLog: AccessLog | undefined;
  readonly tracing: Tracing | undefined;
  readonly metrics: MetricLabels | undefined;
}

export interface ReportDeps {
  /** One that does not compile comes back as one that always fails. */
  readonly expression: (source: string, place: CelPhase) => Expression;
  readonly exporters: Exporters;
  /** What is there before any request is: `env`. */
  readonly process: Scope;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Where no policy speaks: every request is logged, and nothing more. */
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

/**
 * What a Bind reports about its requests and connections (frontend.md 1.5 to 1.7), compiled when a policy changes. In: the
 * merged settings. Out: an object that every exchange of the Bind carries. Expressions run when all is over, in place "log".
 */
import type { AccessLog, MetricLabels, Tracing } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Place } from "../../cel/places.ts";
import { compileLogReport, EVERYTHING, type LogReport } from "./access-log.ts";
import { compileLabels, type MetricLabel } from "./labels.ts";

export interface Reports {
  readonly accessLog: LogReport;
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
  readonly expression: (source: string, place: Place) => Expression;
}

/** Where no policy speaks: every request is logged, and nothing more. */
export const PLAIN_REPORTS: Reports = { accessLog: EVERYTHING, labels: [] };

export function compileReports({ accessLog, metrics }: ReportParts, deps: ReportDeps): Reports {
  if (accessLog === undefined && metrics === undefined) return PLAIN_REPORTS;
  return {
    accessLog: accessLog === undefined ? EVERYTHING : compileLogReport(accessLog, deps),
    labels: metrics === undefined ? [] : compileLabels(metrics, deps),
  };
}

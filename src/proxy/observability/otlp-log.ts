/**
 * `accessLog.otlp` of a Bind: which requests and connections are sent to a collector, and with which fields
 * (docs/telemetry.md).
 */
import type { OtlpAccessLog } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { LogSink } from "../../telemetry/otlp/sinks.ts";
import { compileLogReport, type LogReport } from "./access-log.ts";
import type { StreamInfo } from "./stream-info/stream-info.ts";
import type { ReportDeps } from "./report-deps.ts";

export class OtlpLog {
  readonly #report: LogReport;
  readonly #sink: LogSink;

  constructor(report: LogReport, sink: LogSink) {
    this.#report = report;
    this.#sink = sink;
  }

  /** Exports a finished request or connection. */
  record(info: StreamInfo): void {
    if (!this.#report.wants(info.scope)) return;
    const trace = info.http?.trace;
    const fields = this.#sink.begin({ timeMs: Date.now(), traceId: trace?.traceId, spanId: trace?.spanId });
    if (fields === undefined) return;
    this.#report.addTo(fields, info, false);
    this.#sink.end();
  }
}

/**
 * Compiles the log of a collector. Records always use our own field names, independently of the preset of the lines.
 * @returns undefined when no collector is configured
 */
export function compileOtlpLog(spec: OtlpAccessLog | undefined, deps: ReportDeps): OtlpLog | undefined {
  if (spec?.endpoint === undefined) return undefined;
  const { endpoint, filter, attributes } = spec;
  return new OtlpLog(compileLogReport({ otelNames: false, filter, attributes }, deps), deps.exporters.logs(endpoint));
}

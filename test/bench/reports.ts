/**
 * Measures reports: microseconds of processor time that each adds to the end of a request, without sockets. Log lines
 * go to a writer that discards them and records to a collector that accepts them at once, so that encoding and batching
 * are included.
 */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { AccessLogSchema, MetricLabelsSchema, TracingSchema } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import type { Callout } from "../../src/proxy/callouts/callout.ts";
import { PolicySet } from "../../src/proxy/policies/policy-set.ts";
import { createRecorder } from "../../src/proxy/observability/record.ts";
import { Exporters } from "../../src/proxy/observability/exporters.ts";
import { allocateIds, Ids } from "../../src/proxy/observability/ids.ts";
import { compileReports, PLAIN_REPORTS, type Reports } from "../../src/proxy/observability/observability.ts";
import type { ReportDeps } from "../../src/proxy/observability/report-deps.ts";
import { createAccessLog, type AccessLog } from "../../src/telemetry/access-log.ts";
import type { LogFormat } from "../../src/telemetry/log-lines.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { makeDeps } from "../support/gateway/exchange.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { answer, exchangeOf, microseconds, PLAIN } from "./in-process.ts";
import { printTable } from "./report.ts";

interface Load {
  readonly title: string;
  readonly format?: LogFormat;
  readonly accessLog?: MessageInitShape<typeof AccessLogSchema>;
  readonly tracing?: MessageInitShape<typeof TracingSchema>;
  readonly metrics?: MessageInitShape<typeof MetricLabelsSchema>;
}

const ADDED = [
  { name: "agent", expression: 'request.headers["user-agent"]' },
  { name: "path", expression: "request.path" },
];
const LOADS: readonly Load[] = [
  { title: "access log, text", format: "text" },
  { title: "access log, JSON", format: "json" },
  { title: "access log, text, two attributes added", format: "text", accessLog: { attributes: { add: ADDED } } },
  { title: "access log for a collector", accessLog: { otlp: { endpoint: {} } } },
  { title: "tracing, not sampled", tracing: { endpoint: {}, randomSampling: "0.0" } },
  { title: "tracing, sampled: a span of the request", tracing: { endpoint: {}, randomSampling: "true" } },
  { title: "two labels of metrics added", metrics: { add: ADDED } },
];

export async function reportTable(): Promise<string> {
  const deps = depsOf();
  const nothing = await cost(PLAIN_REPORTS, undefined, false);
  const counted = await cost(PLAIN_REPORTS, undefined, true);
  const rows = [["metrics", (counted - nothing).toFixed(2)]];
  for (const { title, format, accessLog, tracing, metrics } of LOADS) {
    const parts = {
      accessLog: accessLog === undefined ? undefined : create(AccessLogSchema, accessLog),
      tracing: tracing === undefined ? undefined : create(TracingSchema, tracing),
      metrics: metrics === undefined ? undefined : create(MetricLabelsSchema, metrics),
    };
    const lines = format === undefined ? undefined : createAccessLog({ format, write: () => true });
    rows.push([title, ((await cost(compileReports(parts, deps), lines, true)) - counted).toFixed(2)]);
    lines?.close();
  }
  await deps.exporters.end();
  return printTable(["report", "µs"], rows);
}

function cost(reports: Reports, accessLog: AccessLog | undefined, isCounted: boolean): Promise<number> {
  const metrics = isCounted ? { metrics: createMetrics("bench") } : {};
  const lines = accessLog === undefined ? {} : { accessLog };
  const record = createRecorder({ ...metrics, ...lines }, new Ids(allocateIds()), () => new Set());
  return microseconds(() => {
    const exchange = exchangeOf(PLAIN, "GET");
    exchange.reports = reports;
    exchange.trace = reports.tracing?.begin(exchange);
    exchange.backend = { name: "default/bench", type: "static", protocol: "http" };
    exchange.reply = answer();
    const outcome = {
      status: 200,
      clientGone: false,
      error: undefined,
      durationMs: 1.5,
      requestBytes: 0,
      responseBytes: 1024,
    };
    exchange.finish(outcome);
    record(exchange, outcome);
  });
}

function depsOf(): ReportDeps {
  const policies = new PolicySet(makeDeps());
  const callouts = { open: () => new AcceptingCallout() };
  const { log } = recordingLog();
  const onDropped = (): never => {
    throw new Error("a record was dropped: what it costs would be missing");
  };
  const exporters = new Exporters({ log, clock: systemClock, callouts, resource: [], onDropped });
  return {
    expression: (source, place) => policies.expression(source, place),
    exporters,
    process: { root: () => undefined },
    random: Math.random,
  };
}

/** A collector that accepts every record. */
class AcceptingCallout implements Callout {
  readonly path = "";
  readonly invalidReason = undefined;

  unary<I extends DescMessage, O extends DescMessage>(method: { readonly input: I; readonly output: O }) {
    return Promise.resolve(create(method.output));
  }

  stream(): never {
    throw new Error("records are sent in single calls");
  }

  http(): never {
    throw new Error("records are sent over gRPC");
  }
}

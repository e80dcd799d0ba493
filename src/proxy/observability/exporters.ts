/**
 * The OTLP exporters of a data plane: one for each collector that a policy names, shared by its Binds. A changed policy
 * gets a new exporter, and the previous one sends what it still holds in the background. Nothing has to be closed: an
 * exporter is held by the message that names it, and by `#busy` while it has records to send.
 */
import { LogsService } from "../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { TraceService } from "../../../generated/proto/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import type { OtlpEndpoint } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { Envelope } from "../../telemetry/otlp/encode.ts";
import { Exporter, type ExporterOptions } from "../../telemetry/otlp/exporter.ts";
import { withNamed, type Resource } from "../../telemetry/otlp/resource.ts";
import type { LogSink, SpanSink } from "../../telemetry/otlp/sinks.ts";
import type { Callouts } from "../callouts/callouts.ts";
import { OpenCalls, transportOf, type Signal } from "./otlp-transport.ts";

export interface ExportersOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly callouts: Pick<Callouts, "open">;
  /** Attributes of the data plane that sends the reports. */
  readonly resource: Resource;
  readonly onDropped: (signal: "logs" | "traces", records: number) => void;
}

const LOG_DELAY_MS = 1_000;
const SPAN_DELAY_MS = 5_000;
const EXPORT_TIMEOUT_MS = 10_000;
const FLUSH_MS = 5_000;

const LOGS: Signal<typeof LogsService.method.export.input, typeof LogsService.method.export.output> = {
  method: LogsService.method.export,
  rejectedOf: ({ partialSuccess }) => ({
    rejected: partialSuccess?.rejectedLogRecords ?? 0n,
    message: partialSuccess?.errorMessage ?? "",
  }),
};

const TRACES: Signal<typeof TraceService.method.export.input, typeof TraceService.method.export.output> = {
  method: TraceService.method.export,
  rejectedOf: ({ partialSuccess }) => ({
    rejected: partialSuccess?.rejectedSpans ?? 0n,
    message: partialSuccess?.errorMessage ?? "",
  }),
};

type OtlpTransportDeps = Parameters<typeof transportOf>[2];

type Kind = Pick<ExporterOptions, "envelope" | "delayMs"> & { readonly signal: "logs" | "traces" };

export class Exporters {
  readonly #options: ExportersOptions;
  /** Keyed by the endpoint message, then by the attributes of the envelope. */
  readonly #made = new WeakMap<OtlpEndpoint, Map<string, Exporter>>();
  /** Exporters with records to send. */
  readonly #busy = new Set<Exporter>();
  readonly #calls = new OpenCalls();

  constructor(options: ExportersOptions) {
    this.#options = options;
  }

  /** Returns the same exporter for the same message. */
  logs(endpoint: OtlpEndpoint): LogSink {
    const envelope = new Envelope(this.#options.resource, "gwproxy.access");
    const kind = { signal: "logs", delayMs: LOG_DELAY_MS, envelope } as const;
    return this.#find(endpoint, kind, (deps) => transportOf(endpoint, LOGS, deps));
  }

  /**
   * Returns the same exporter for the same message and attributes.
   * @param named further attributes of the data plane
   */
  spans(endpoint: OtlpEndpoint, named: Resource): SpanSink {
    const envelope = new Envelope(withNamed(this.#options.resource, named), "gwproxy.tracing");
    const kind = { signal: "traces", delayMs: SPAN_DELAY_MS, envelope } as const;
    return this.#find(endpoint, kind, (deps) => transportOf(endpoint, TRACES, deps));
  }

  /** Sends the pending records for at most five seconds, then ends. */
  async end(): Promise<void> {
    await Promise.all(Array.from(this.#busy, (exporter) => exporter.flush(FLUSH_MS)));
    // A call that hangs would keep the process alive until its timeout.
    this.#calls.abort();
  }

  #find(endpoint: OtlpEndpoint, kind: Kind, sendBy: (deps: OtlpTransportDeps) => ExporterOptions["send"]): Exporter {
    let made = this.#made.get(endpoint);
    if (made === undefined) this.#made.set(endpoint, (made = new Map()));
    const { key } = kind.envelope;
    let exporter = made.get(key);
    if (exporter === undefined) {
      const callout = this.#options.callouts.open(endpoint.service, "Otlp", EXPORT_TIMEOUT_MS);
      made.set(key, (exporter = this.#make(endpoint, kind, sendBy({ callout, calls: this.#calls }))));
    }
    return exporter;
  }

  #make(endpoint: OtlpEndpoint, { signal, delayMs, envelope }: Kind, send: ExporterOptions["send"]): Exporter {
    const { log, clock, onDropped } = this.#options;
    return new Exporter({
      envelope,
      send,
      delayMs,
      clock,
      log,
      collector: nameOf(endpoint),
      onDropped: (records) => onDropped(signal, records),
      onBusy: (exporter, busy) => void (busy ? this.#busy.add(exporter) : this.#busy.delete(exporter)),
    });
  }
}

function nameOf({ service }: OtlpEndpoint): string {
  const place = service?.place;
  switch (place?.case) {
    case "backend":
      return place.value;
    case "origin":
      return `${place.value.host}:${place.value.port}`;
    case undefined:
      return "unresolved";
  }
}

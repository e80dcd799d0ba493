/**
 * A real OpenTelemetry collector, a process of its own on loopback that ends with the test. In: OTLP over gRPC and HTTP.
 * Out: the records it took, read from the JSON that it prints.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { expectEvent } from "../support/proofs/expect-event.ts";
import type { ProofContext } from "../support/proofs/prove.ts";
import { programs } from "./programs.ts";

type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };
type Values = Readonly<Record<string, Value>>;

export interface CollectedLog {
  readonly resource: Values;
  readonly scope: string;
  readonly severity: number;
  readonly severityText: string;
  readonly body: Value;
  /** Nanoseconds since 1970. */
  readonly time: bigint;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Values;
}

export interface CollectedSpan {
  readonly resource: Values;
  readonly scope: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  /** 2 server, 3 client. */
  readonly kind: number;
  readonly start: bigint;
  readonly end: bigint;
  readonly flags: number;
  /** 2 error. */
  readonly status: number;
  readonly message: string;
  readonly attributes: Values;
}

export interface Collector {
  readonly grpcPort: number;
  readonly httpPort: number;
  /** Everything taken so far, oldest first. */
  readonly logs: readonly CollectedLog[];
  readonly spans: readonly CollectedSpan[];
  /** Resolves when the check holds; it is asked now and after each batch. Rejects after a minute without a batch. */
  until(check: () => boolean): Promise<void>;
  /** Ends it before the test does; resolves when its ports are closed and everything that it took is here. */
  stop(): Promise<void>;
}

export interface CollectorOptions {
  /** Files of PEM; without them it speaks plain text. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly clientCa?: string };
  /** In place of the usual paths of HTTP. */
  readonly paths?: { readonly logs?: string; readonly traces?: string };
}

export async function startCollector(context: ProofContext, options: CollectorOptions = {}): Promise<Collector> {
  const program = join(await programs("telemetry"), "collector");
  const [grpcPort = 0, httpPort = 0] = await freePorts(2);
  const child = spawn(program, [configuration(grpcPort, httpPort, options)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.on("error", () => undefined);
  // Its output is read to the end by then.
  const closed = new Promise<void>((resolve) => void child.once("close", () => resolve()));
  const stop = (): Promise<void> => {
    child.stdin.end();
    return closed;
  };
  context.after(stop);
  const logs: CollectedLog[] = [];
  const spans: CollectedSpan[] = [];
  let next = Promise.withResolvers<void>();
  const ready = new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the collector ended with ${code}; its messages are above`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "ready") {
        resolve();
        return;
      }
      // As OTLP's JSON is specified; only this reads it.
      const printed = JSON.parse(line) as Printed;
      logs.push(...logsOf(printed));
      spans.push(...spansOf(printed));
      next.resolve();
      next = Promise.withResolvers();
    });
  });
  await ready;
  return {
    grpcPort,
    httpPort,
    logs,
    spans,
    stop,
    async until(check) {
      while (!check()) {
        await expectEvent(context, next.promise, "something that reaches the collector");
      }
    },
  };
}

function configuration(grpcPort: number, httpPort: number, { tls, paths = {} }: CollectorOptions): string {
  const security =
    tls === undefined
      ? {}
      : {
          tls: {
            cert_file: tls.certificate,
            key_file: tls.key,
            ...(tls.clientCa === undefined ? {} : { client_ca_file: tls.clientCa }),
          },
        };
  const receiver = {
    protocols: {
      grpc: { endpoint: `127.0.0.1:${grpcPort}`, ...security },
      http: {
        endpoint: `127.0.0.1:${httpPort}`,
        ...security,
        ...(paths.logs === undefined ? {} : { logs_url_path: paths.logs }),
        ...(paths.traces === undefined ? {} : { traces_url_path: paths.traces }),
      },
    },
  };
  const pipeline = { receivers: ["otlp"], exporters: ["stdout"] };
  return JSON.stringify({
    receivers: { otlp: receiver },
    exporters: { stdout: {} },
    service: {
      pipelines: { logs: pipeline, traces: pipeline },
      telemetry: { logs: { level: "error" }, metrics: { level: "none" } },
    },
  });
}

interface PrintedValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  /** 64 bits are text in the JSON of protobuf. */
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly PrintedValue[] };
  readonly kvlistValue?: { readonly values?: readonly PrintedMember[] };
}

interface PrintedMember {
  readonly key: string;
  readonly value: PrintedValue;
}

interface PrintedOrigin {
  readonly resource?: { readonly attributes?: readonly PrintedMember[] };
}

interface Printed {
  readonly resourceLogs?: readonly (PrintedOrigin & {
    readonly scopeLogs: readonly { readonly scope: { readonly name: string }; readonly logRecords: PrintedLog[] }[];
  })[];
  readonly resourceSpans?: readonly (PrintedOrigin & {
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: PrintedSpan[] }[];
  })[];
}

interface PrintedLog {
  readonly timeUnixNano?: string;
  readonly severityNumber?: number;
  readonly severityText?: string;
  readonly body?: PrintedValue;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly attributes?: readonly PrintedMember[];
}

interface PrintedSpan extends PrintedLog {
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name?: string;
  readonly kind?: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly flags?: number;
  readonly status?: { readonly code?: number; readonly message?: string };
}

function logsOf({ resourceLogs = [] }: Printed): CollectedLog[] {
  return resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs.flatMap(({ scope, logRecords }) =>
      logRecords.map((record) => ({
        resource: valuesOf(resource?.attributes),
        scope: scope.name,
        severity: record.severityNumber ?? 0,
        severityText: record.severityText ?? "",
        body: valueOf(record.body ?? {}),
        time: BigInt(record.timeUnixNano ?? 0),
        traceId: record.traceId ?? "",
        spanId: record.spanId ?? "",
        attributes: valuesOf(record.attributes),
      })),
    ),
  );
}

function spansOf({ resourceSpans = [] }: Printed): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        resource: valuesOf(resource?.attributes),
        scope: scope.name,
        traceId: span.traceId ?? "",
        spanId: span.spanId ?? "",
        parentSpanId: span.parentSpanId ?? "",
        traceState: span.traceState ?? "",
        name: span.name ?? "",
        kind: span.kind ?? 0,
        start: BigInt(span.startTimeUnixNano),
        end: BigInt(span.endTimeUnixNano),
        flags: span.flags ?? 0,
        status: span.status?.code ?? 0,
        message: span.status?.message ?? "",
        attributes: valuesOf(span.attributes),
      })),
    ),
  );
}

function valuesOf(members: readonly PrintedMember[] = []): Values {
  return Object.fromEntries(members.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(value: PrintedValue): Value {
  if (value.intValue !== undefined) return Number(value.intValue);
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(valueOf);
  if (value.kvlistValue !== undefined) return valuesOf(value.kvlistValue.values);
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? null;
}

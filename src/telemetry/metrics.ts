/** The metrics of a data plane (observability.md 2): what the request path tells, counted as metric-table.ts says. */
import type { MetricFormat, GaugeCallback } from "./exposition.ts";
import { METRICS, METRIC_PREFIX, READINGS, type MetricGroup, type ReadingName } from "./metric-table.ts";
import { Registry, type Counted, type Group, type Readings } from "./registry.ts";
import { SeriesExpiry } from "./series-expiry.ts";
import { labelValue, UNKNOWN } from "./label-value.ts";
import type { Row } from "./series.ts";

export interface RequestSample {
  readonly backend: string;
  readonly protocol: string;
  readonly method: string;
  readonly status: number;
  readonly reason: string;
  readonly bind: string;
  readonly gateway: string;
  readonly listener: string;
  readonly route: string;
  readonly routeRule: string;
  /** Name and value of each label of `frontend.metrics`, as `customLabels` makes them. */
  readonly extra: readonly string[];
  readonly durationSeconds: number;
  /** From arrival to the first call of a backend; undefined: there was none. */
  readonly requestProcessingSeconds: number | undefined;
  /** From the head of the backend's answer to the end; undefined: there was none. */
  readonly responseProcessingSeconds: number | undefined;
  readonly responseBytes: number;
  /** Calls beyond the first. */
  readonly retries: number;
  readonly llm?: LlmSample | undefined;
}

type TokenType = "input" | "output" | "input_cache_read" | "input_cache_write";

export interface LlmSample {
  readonly operation: string;
  readonly system: string;
  readonly requestModel: string;
  readonly responseModel: string;
  readonly tokens: Readonly<Record<TokenType, number | undefined>>;
  /** Of streams. */
  readonly secondsToFirstToken?: number | undefined;
  readonly secondsPerOutputToken?: number | undefined;
}

type GroupOf<Spec> = Spec extends MetricGroup<infer C, infer H> ? Group<C, H> : never;

/** Counts the connections of one place. */
export interface ConnectionMeter {
  opened(): void;
  /** A handshake is done, that long after its connection was taken. */
  secured(seconds: number): void;
  /** Called once for each that was opened. */
  closed(receivedBytes: number, sentBytes: number): void;
}

/** Counts the calls of one backend. */
export interface BackendMeter {
  /** @param kind Primary or Mirror @param seconds until the head of the answer, or until it was clear that there is none */
  called(kind: string, seconds: number): void;
  /** One of its endpoints is put out of rotation. */
  ejected(): void;
  /** The configuration names this model, so requests for it are counted by its name. */
  modelConfigured(model: string): void;
}

/** Counts what this process hears from its controller. */
interface ControllerMeter {
  message(typeUrl: string, bytes: number): void;
  ended(reason: StreamEnd): void;
}

/** It could not be opened, it broke, or the other side ended it in good order. */
type StreamEnd = "ConnectionError" | "Error" | "Complete";

export interface Metrics {
  /** @param protocol http, https, tcp or tls */
  connections(place: { readonly bind: string; readonly gateway: string; readonly protocol: string }): ConnectionMeter;
  request(sample: RequestSample): void;
  /** @param subtype of its calls */
  backend(name: string, subtype: string): BackendMeter;
  /** A policy, a log or a trace has called somebody. */
  called(subtype: string, seconds: number): void;
  /** A connection to an upstream can be used. @param transport plaintext, tls, tunnel or tunnel-tls */
  connected(transport: string, seconds: number): void;
  readonly controller: ControllerMeter;
  /** What somebody else knows is read when it is asked for. */
  reading(name: ReadingName, read: () => Iterable<GaugeCallback>): void;
  /** Something that was to be reported is lost. @param way the log of the process, or a collector @param signal what it was */
  dropped(way: "log" | "otlp", signal: string, count: number): void;
  /** A thread that served had to be replaced. */
  threadReplaced(): void;
  /** Everything counted since the last call, for `add` of the main thread's metrics. */
  take(): Counted;
  add(counted: Counted): void;
  /** What this thread alone knows, for `told` of the main thread's metrics. */
  readings(): Readings;
  /** @param readings undefined: the thread is no more */
  told(thread: string, readings: Readings | undefined): void;
  /** Forgets what was counted for routes and Binds that are gone for ten minutes. To be called every now and then. */
  retire(present: { readonly routes: ReadonlySet<string>; readonly binds: ReadonlySet<string> }, nowMs: number): void;
  print(format: MetricFormat): string;
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);
const PLACE_AT = METRICS.requests.labels.indexOf("bind");
const FAILURES = new Set(["UpstreamFailure", "NoHealthyBackend", "Timeout"]);

export function createMetrics(version: string): Metrics {
  const registry = new Registry(METRIC_PREFIX);
  for (const [name, spec] of Object.entries(READINGS)) registry.reading(name, spec, () => []);
  registry.reading("build_info", READINGS.build_info, () => [{ values: [version], value: 1 }]);
  const request = createRequestCounts(registry);
  const connections = registry.group(METRICS.connections);
  const dropped = { log: registry.group(METRICS.logDropped), otlp: registry.group(METRICS.otlpDropped) };
  const threads = registry.group(METRICS.threads);
  const calls = registry.group(METRICS.calls);
  const connects = registry.group(METRICS.connects);
  const routes = new SeriesExpiry(registry, "route");
  const binds = new SeriesExpiry(registry, "bind");
  return {
    connections: ({ bind, gateway, protocol }) =>
      // Which listener a connection is for shows with its requests.
      meterOf(connections, [bind, gateway, "unknown", protocol]),
    request,
    backend: createBackendMeters(registry, calls),
    called: (subtype, seconds) =>
      calls.histograms.upstream_call_duration_seconds.observe(calls.row(["Policy", subtype]), seconds),
    connected: (transport, seconds) =>
      connects.histograms.upstream_connect_duration_seconds.observe(connects.row([transport]), seconds),
    controller: createControllerMeter(registry),
    reading: (name, read) => registry.reading(name, READINGS[name], read),
    dropped(way, signal, count) {
      const { log, otlp } = dropped;
      if (way === "log") log.counters.log_dropped_total.add(log.row([signal]), count);
      else otlp.counters.otlp_dropped_total.add(otlp.row([signal]), count);
    },
    threadReplaced: () => threads.counters.thread_restarts_total.add(threads.row([]), 1),
    take: () => registry.take(),
    add: (counted) => registry.add(counted),
    readings: () => registry.readings(),
    told: (thread, readings) => registry.told(thread, readings),
    retire(present, nowMs) {
      routes.review(present.routes, nowMs);
      binds.review(present.binds, nowMs);
    },
    print: (format) => registry.print(format),
  };
}

function meterOf(
  { series, counters, histograms }: GroupOf<typeof METRICS.connections>,
  labels: readonly string[],
): ConnectionMeter {
  const counted = series(labels);
  return {
    opened: () => counters.downstream_connections_total.add(counted.row, 1),
    secured: (seconds) => histograms.tls_handshake_duration_seconds.observe(counted.row, seconds),
    closed(receivedBytes, sentBytes) {
      counters.downstream_received_bytes_total.add(counted.row, receivedBytes);
      counters.downstream_sent_bytes_total.add(counted.row, sentBytes);
    },
  };
}

function createBackendMeters(
  registry: Registry,
  { series, histograms }: GroupOf<typeof METRICS.calls>,
): Metrics["backend"] {
  const ejections = registry.group(METRICS.ejections);
  return (name, subtype) => {
    const primary = series(["Primary", subtype]);
    const mirror = series(["Mirror", subtype]);
    return {
      called: (kind, seconds) =>
        histograms.upstream_call_duration_seconds.observe((kind === "Mirror" ? mirror : primary).row, seconds),
      ejected: () => ejections.counters.endpoint_ejections_total.add(ejections.row([name]), 1),
      modelConfigured: (model) => registry.reserve(REQUEST_MODEL, labelValue(model)),
    };
  };
}

function createControllerMeter(registry: Registry): ControllerMeter {
  const streams = registry.group(METRICS.controllerStreams);
  const { row, counters } = registry.group(METRICS.controllerMessages);
  return {
    message(typeUrl, bytes) {
      counters.xds_message_total.add(row([typeUrl]), 1);
      counters.xds_message_bytes_total.add(row([typeUrl]), bytes);
    },
    ended: (reason) => streams.counters.xds_connection_terminations_total.add(streams.row([reason]), 1),
  };
}

function createRequestCounts(registry: Registry): (sample: RequestSample) => void {
  const { row, counters } = registry.group(METRICS.requests);
  const durations = registry.group(METRICS.durations);
  const failures = registry.group(METRICS.failures);
  const processing = registry.group(METRICS.processing);
  const models = createModelCounts(registry);
  // The place of a request is at the end of its labels, behind the reason.
  const processingOf = ({ values }: Row): Row => processing.row([...values.slice(0, 2), ...values.slice(PLACE_AT)]);
  return (sample) => {
    const method = METHODS.has(sample.method) ? sample.method : "other";
    const { backend, protocol, status, reason, bind, gateway, listener, route, routeRule, extra } = sample;
    const labels = [backend, protocol, method, String(status), reason, bind, gateway, listener, route, routeRule];
    if (extra.length > 0) labels.push(...extra);
    const counted = row(labels);
    counters.requests_total.add(counted, 1);
    counters.response_bytes_total.add(counted, sample.responseBytes);
    // All of a request have the same labels: found with one row is the next.
    const timed = (counted.partner ??= durations.row(labels));
    durations.histograms.request_duration_seconds.observe(timed, sample.durationSeconds);
    if (sample.retries > 0) counters.retries_total.add(counted, sample.retries);
    if (FAILURES.has(reason)) failures.counters.upstream_failures_total.add(failures.row([backend, reason]), 1);
    const { requestProcessingSeconds, responseProcessingSeconds, llm } = sample;
    if (requestProcessingSeconds !== undefined) {
      const ours = (timed.partner ??= processingOf(timed));
      processing.histograms.request_processing_seconds.observe(ours, requestProcessingSeconds);
      if (responseProcessingSeconds !== undefined)
        processing.histograms.response_processing_seconds.observe(ours, responseProcessingSeconds);
    }
    if (llm !== undefined) models(sample, llm);
  };
}

function createModelCounts(registry: Registry): (sample: RequestSample, llm: LlmSample) => void {
  const tokens = registry.group(METRICS.tokens);
  const models = registry.group(METRICS.models);
  return (sample, llm) => {
    const asked = labelValue(llm.requestModel);
    // A client can invent any name: it counts once an upstream has taken a request for it, or the configuration names it.
    const isKnown = isAnswered(sample) || registry.isKnown(REQUEST_MODEL, asked);
    const model = [llm.operation, llm.system, isKnown ? asked : UNKNOWN, labelValue(llm.responseModel)];
    const labels = [...model, ...requestLabels(sample)];
    const counted = models.row(labels);
    models.histograms.gen_ai_server_request_duration.observe(counted, sample.durationSeconds);
    const { secondsToFirstToken, secondsPerOutputToken } = llm;
    if (secondsToFirstToken !== undefined)
      models.histograms.gen_ai_server_time_to_first_token.observe(counted, secondsToFirstToken);
    if (secondsPerOutputToken !== undefined)
      models.histograms.gen_ai_server_time_per_output_token.observe(counted, secondsPerOutputToken);
    for (const [type, count] of Object.entries(llm.tokens))
      if (count !== undefined)
        tokens.histograms.gen_ai_client_token_usage.observe(tokens.row([type, ...labels]), count);
  };
}

const REQUEST_MODEL = "gen_ai_request_model";

/** Whether the upstream answered with 2xx. */
function isAnswered({ reason, status }: RequestSample): boolean {
  return reason === "Upstream" && status >= 200 && status < 300;
}

function requestLabels({ bind, gateway, listener, route, routeRule, extra }: RequestSample): string[] {
  return [bind, gateway, listener, route, routeRule, ...extra];
}

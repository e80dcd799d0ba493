/**
 * The metrics of a data plane (docs/reference/metrics.md): an interface with one method per event of the request path,
 * implemented on the registry and the groups of metric-table.ts. Every thread has one; worker threads hand their counts
 * to the main thread (`take`/`add`, `observations`/`replaceObservations`), which prints them.
 */
import type { MetricFormat, Observation } from "./exposition.ts";
import { METRICS, METRIC_PREFIX, OBSERVABLES, type MetricGroup, type ObservableName } from "./metric-table.ts";
import { Registry, type Counted, type Group, type Observations, type Reading } from "./registry.ts";
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
  /** Alternating names and values of the labels of `frontend.metrics`, from `labelsOf`. */
  readonly extra: readonly string[];
  readonly durationSeconds: number;
  /** From arrival to the first call of a backend; undefined when there was no call. */
  readonly requestProcessingSeconds: number | undefined;
  /** From the head of the backend's response to the end; undefined when there was no response. */
  readonly responseProcessingSeconds: number | undefined;
  readonly responseBytes: number;
  /** Calls beyond the first. */
  readonly retries: number;
  readonly llm?: LlmSample | undefined;
  readonly agent?: AgentSample | undefined;
  readonly mcp?: McpSample | undefined;
  /** Checks of prompt guards; undefined when there were none. */
  readonly guardChecks?: Iterable<GuardSample> | undefined;
}

/** A call of an A2A agent. */
export interface AgentSample {
  /** One of a bounded set. */
  readonly method: string;
  readonly outcome: string;
}

/** A message of an MCP client. */
export interface McpSample {
  readonly method: string;
  /** undefined for methods that concern no items. */
  readonly itemType: string | undefined;
  /** Name of the target that was called. */
  readonly target: string | undefined;
  /** Name of the tool or prompt. */
  readonly name: string | undefined;
}

interface GuardSample {
  /** Request or Response. */
  readonly phase: string;
  readonly outcome: string;
  readonly count: number;
}

type TokenType = "input" | "output" | "input_cache_read" | "input_cache_write";

export interface LlmSample {
  readonly operation: string;
  readonly system: string;
  readonly requestModel: string;
  readonly responseModel: string;
  readonly tokens: Readonly<Record<TokenType, number | undefined>>;
  /** Dollars; undefined when the catalog does not price the model. */
  readonly costUsd?: number | undefined;
  /** Status of the look-up in the model catalog; undefined when there was no usage to price. */
  readonly lookup?: string | undefined;
  /** Set for streams only. */
  readonly secondsToFirstToken?: number | undefined;
  readonly secondsPerOutputToken?: number | undefined;
}

type GroupOf<Spec> = Spec extends MetricGroup<infer C, infer H> ? Group<C, H> : never;

/** Counts the connections of one Bind. */
export interface ConnectionMeter {
  opened(): void;
  /** Records a TLS handshake and its duration since the connection was accepted. */
  secured(seconds: number): void;
  /** Called once for each opened connection. */
  closed(receivedBytes: number, sentBytes: number): void;
}

/** What an endpoint picker has done with a request; `answered` is a response of its own. */
export type PickerResult = "picked" | "answered" | "failed_open" | "failed" | "cancelled";

/** Counts the calls of one backend. */
export interface BackendMeter {
  /**
   * @param kind Primary or Mirror
   * @param seconds until the head of the response, or until the call failed
   */
  called(kind: string, seconds: number): void;
  /** Records that an endpoint was ejected. */
  ejected(): void;
  /** Records that an endpoint picker was asked. @param seconds until its choice */
  picked(result: PickerResult, seconds: number): void;
  /** Registers a model that the configuration names, so that requests for it are counted by its name. */
  modelConfigured(model: string): void;
}

/** Counts the messages that this process receives from its controller. */
interface ControllerMeter {
  message(typeUrl: string, bytes: number): void;
  ended(reason: StreamEnd): void;
}

/** How a stream ended: it could not be opened, it broke, or the other side closed it regularly. */
type StreamEnd = "ConnectionError" | "Error" | "Complete";

export interface Metrics {
  /** @param protocol http, https, tcp or tls */
  connections(place: { readonly bind: string; readonly gateway: string; readonly protocol: string }): ConnectionMeter;
  request(sample: RequestSample): void;
  /** @param subtype of its calls */
  backend(name: string, subtype: string): BackendMeter;
  /** Records a call that a policy, a log or a trace made. */
  called(subtype: string, seconds: number): void;
  /** Records that a credential was asked for. @param result ok, error or refused */
  credentialFetched(kind: string, result: string, seconds: number): void;
  /**
   * Records a new connection to an upstream.
   * @param transport plaintext, tls, tunnel or tunnel-tls
   */
  connected(transport: string, seconds: number): void;
  readonly controller: ControllerMeter;
  /** Registers a callback that is read when the metrics are printed. */
  observe(name: ObservableName, read: () => Iterable<Observation>): void;
  /**
   * Records lost reports.
   * @param way the log of the process, or a collector
   * @param signal the kind of report
   */
  dropped(way: "log" | "otlp", signal: string, count: number): void;
  /** Records that a worker thread was replaced. */
  threadReplaced(): void;
  /** Returns and resets all counts, for `add` in the main thread. */
  take(): Counted;
  add(counted: Counted): void;
  /** Returns the values that only this thread has, for `replaceObservations` in the main thread. */
  observations(): Observations;
  /** @param observations undefined when the thread has ended */
  replaceObservations(thread: string, observations: Observations | undefined): void;
  /** Removes the series of routes and Binds that have been absent for ten minutes. Call it periodically. */
  retire(present: { readonly routes: ReadonlySet<string>; readonly binds: ReadonlySet<string> }, nowMs: number): void;
  print(format: MetricFormat): string;
  /** Returns the series of one metric, whose name has no prefix; empty for an unknown name. */
  read(name: string): readonly Reading[];
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);
const PLACE_AT = METRICS.requests.labels.indexOf("bind");
const FAILURES = new Set(["UpstreamFailure", "NoHealthyBackend", "Timeout"]);

export function createMetrics(version: string): Metrics {
  const registry = new Registry(METRIC_PREFIX);
  for (const [name, spec] of Object.entries(OBSERVABLES)) registry.observe(name, spec, () => []);
  registry.observe("build_info", OBSERVABLES.build_info, () => [{ values: [version], value: 1 }]);
  const request = createRequestCounts(registry);
  const connections = registry.group(METRICS.connections);
  const dropped = { log: registry.group(METRICS.logDropped), otlp: registry.group(METRICS.otlpDropped) };
  const threads = registry.group(METRICS.threads);
  const calls = registry.group(METRICS.calls);
  const credentials = registry.group(METRICS.credentials);
  const credentialTimes = registry.group(METRICS.credentialTimes);
  const connects = registry.group(METRICS.connects);
  const routes = new SeriesExpiry(registry, "route");
  const binds = new SeriesExpiry(registry, "bind");
  return {
    connections: ({ bind, gateway, protocol }) =>
      // The listener of a connection is known with its requests only.
      meterOf(connections, [bind, gateway, "unknown", protocol]),
    request,
    backend: createBackendMeters(registry, calls),
    called: (subtype, seconds) =>
      calls.histograms.upstream_call_duration_seconds.observe(calls.row(["Policy", subtype]), seconds),
    credentialFetched(kind, result, seconds) {
      credentials.counters.credential_fetches_total.add(credentials.row([kind, result]), 1);
      credentialTimes.histograms.credential_fetch_seconds.observe(credentialTimes.row([kind]), seconds);
    },
    connected: (transport, seconds) =>
      connects.histograms.upstream_connect_duration_seconds.observe(connects.row([transport]), seconds),
    controller: createControllerMeter(registry),
    observe: (name, read) => registry.observe(name, OBSERVABLES[name], read),
    dropped(way, signal, count) {
      const { log, otlp } = dropped;
      if (way === "log") log.counters.log_dropped_total.add(log.row([signal]), count);
      else otlp.counters.otlp_dropped_total.add(otlp.row([signal]), count);
    },
    threadReplaced: () => threads.counters.thread_restarts_total.add(threads.row([]), 1),
    read: (name) => registry.read(name),
    take: () => registry.take(),
    add: (counted) => registry.add(counted),
    observations: () => registry.observations(),
    replaceObservations: (thread, observations) => registry.replaceObservations(thread, observations),
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
  const picks = registry.group(METRICS.picks);
  const pickTimes = registry.group(METRICS.pickTimes);
  return (name, subtype) => {
    const primary = series(["Primary", subtype]);
    const mirror = series(["Mirror", subtype]);
    return {
      called: (kind, seconds) =>
        histograms.upstream_call_duration_seconds.observe((kind === "Mirror" ? mirror : primary).row, seconds),
      ejected: () => ejections.counters.endpoint_ejections_total.add(ejections.row([name]), 1),
      picked(result, seconds) {
        picks.counters.endpoint_picker_requests_total.add(picks.row([name, result]), 1);
        pickTimes.histograms.endpoint_picker_seconds.observe(pickTimes.row([name]), seconds);
      },
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
  const guards = registry.group(METRICS.guards);
  const agents = registry.group(METRICS.agents);
  const tools = registry.group(METRICS.tools);
  // The labels of the place come last, after the reason.
  const processingOf = ({ values }: Row): Row => processing.row([...values.slice(0, 2), ...values.slice(PLACE_AT)]);
  return (sample) => {
    const method = METHODS.has(sample.method) ? sample.method : "other";
    const { backend, protocol, status, reason, bind, gateway, listener, route, routeRule, extra } = sample;
    const labels = [backend, protocol, method, String(status), reason, bind, gateway, listener, route, routeRule];
    if (extra.length > 0) labels.push(...extra);
    const counted = row(labels);
    counters.requests_total.add(counted, 1);
    counters.response_bytes_total.add(counted, sample.responseBytes);
    // All metrics of a request have the same labels, so each row keeps a reference to the next one and saves a look-up.
    const timed = (counted.partner ??= durations.row(labels));
    durations.histograms.request_duration_seconds.observe(timed, sample.durationSeconds);
    if (sample.retries > 0) counters.retries_total.add(counted, sample.retries);
    if (FAILURES.has(reason)) failures.counters.upstream_failures_total.add(failures.row([backend, reason]), 1);
    const { requestProcessingSeconds, responseProcessingSeconds, llm, agent, mcp } = sample;
    if (requestProcessingSeconds !== undefined) {
      const ours = (timed.partner ??= processingOf(timed));
      processing.histograms.request_processing_seconds.observe(ours, requestProcessingSeconds);
      if (responseProcessingSeconds !== undefined)
        processing.histograms.response_processing_seconds.observe(ours, responseProcessingSeconds);
    }
    if (llm !== undefined) models(sample, llm);
    if (agent !== undefined)
      agents.counters.a2a_requests_total.add(agents.row([agent.method, agent.outcome, ...requestLabels(sample)]), 1);
    if (mcp !== undefined) {
      const { method: name, itemType = UNKNOWN, target = UNKNOWN, name: item = UNKNOWN } = mcp;
      const values = [name, itemType, target, isAnswered(sample) ? labelValue(item) : UNKNOWN];
      tools.counters.mcp_requests_total.add(tools.row([...values, ...requestLabels(sample)]), 1);
    }
    for (const { phase, outcome, count } of sample.guardChecks ?? [])
      guards.counters.guardrail_checks_total.add(guards.row([phase, outcome, ...requestLabels(sample)]), count);
  };
}

function createModelCounts(registry: Registry): (sample: RequestSample, llm: LlmSample) => void {
  const tokens = registry.group(METRICS.tokens);
  const models = registry.group(METRICS.models);
  const costs = registry.group(METRICS.costs);
  const lookups = registry.group(METRICS.lookups);
  return (sample, llm) => {
    const asked = labelValue(llm.requestModel);
    // A client can invent any model name: it is counted by name once an upstream has accepted a request for it, or when
    // the configuration names it.
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
    const { costUsd, lookup } = llm;
    if (costUsd !== undefined) costs.counters.gen_ai_client_cost_usd_total.add(costs.row(labels), costUsd);
    if (lookup !== undefined) lookups.counters.cost_catalog_lookups_total.add(lookups.row([lookup, ...labels]), 1);
    for (const [type, count] of Object.entries(llm.tokens))
      if (count !== undefined)
        tokens.histograms.gen_ai_client_token_usage.observe(tokens.row([type, ...labels]), count);
  };
}

const REQUEST_MODEL = "gen_ai_request_model";

/** Returns whether the upstream answered with 2xx. */
function isAnswered({ reason, status }: RequestSample): boolean {
  return reason === "Upstream" && status >= 200 && status < 300;
}

function requestLabels({ bind, gateway, listener, route, routeRule, extra }: RequestSample): string[] {
  return [bind, gateway, listener, route, routeRule, ...extra];
}

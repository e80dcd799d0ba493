/** The metrics of a data plane (observability.md 2), and their text form for Prometheus. */
import { createRegistry, type Counted, type Registry } from "./registry.ts";

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
  readonly durationSeconds: number;
  readonly responseBytes: number;
  readonly llm?: LlmSample | undefined;
}

export type TokenType = "input" | "output" | "input_cache_read" | "input_cache_write";

export interface LlmSample {
  readonly operation: string;
  readonly system: string;
  readonly requestModel: string;
  readonly responseModel: string;
  readonly tokens: Readonly<Record<TokenType, number | undefined>>;
}

/** Counts the connections of one place. */
export interface ConnectionMeter {
  opened(): void;
  /** Called once for each that was opened. */
  closed(receivedBytes: number, sentBytes: number): void;
}

export interface Metrics {
  /** @param protocol http, https, tcp or tls */
  connections(place: { readonly bind: string; readonly gateway: string; readonly protocol: string }): ConnectionMeter;
  request(sample: RequestSample): void;
  /** Gauges that someone else knows are read when asked for. */
  gauge(name: string, help: string, read: () => Iterable<{ labels: Record<string, string>; value: number }>): void;
  /** A thread that served had to be replaced. */
  threadReplaced(): void;
  /** Everything counted since the last call, for `add` of the main thread's metrics. */
  take(): Counted;
  add(counted: Counted): void;
  /** Prometheus text 0.0.4. */
  print(): string;
}

const H = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80];
const T = Array.from({ length: 14 }, (_, power) => 4 ** power);
const G = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);
const HTTP = [
  "backend",
  "protocol",
  "method",
  "status",
  "reason",
  "bind",
  "gateway",
  "listener",
  "route",
  "route_rule",
];
const GEN = ["gen_ai_operation_name", "gen_ai_system", "gen_ai_request_model", "gen_ai_response_model"];
const RS = ["bind", "gateway", "listener", "route", "route_rule"];
const FAILURES = new Set(["UpstreamFailure", "NoHealthyBackend", "Timeout"]);

export function createMetrics(version: string): Metrics {
  const registry: Registry = createRegistry("gwproxy_");
  registry.counter("build_info", "Build of this process.", ["tag"], "gauge").add([version], 1);
  const requests = registry.counter("requests_total", "Requests answered.", HTTP);
  const bytes = registry.counter("response_bytes_total", "Bytes of answer bodies.", HTTP);
  const failures = registry.counter("upstream_failures_total", "Requests that an upstream failed.", [
    "backend",
    "reason",
  ]);
  const duration = registry.histogram("request_duration_seconds", "From arrival to the last byte.", HTTP, H);
  const tokens = registry.histogram(
    "gen_ai_client_token_usage",
    "Tokens per LLM request.",
    ["gen_ai_token_type", ...GEN, ...RS],
    T,
  );
  const generation = registry.histogram(
    "gen_ai_server_request_duration",
    "Duration of LLM requests.",
    [...GEN, ...RS],
    G,
  );
  const replaced = registry.counter("thread_restarts_total", "Threads that died and were replaced.", []);
  const TCP = ["bind", "gateway", "listener", "protocol"];
  const connections = registry.counter("downstream_connections_total", "Connections of clients taken.", TCP);
  const received = registry.counter("downstream_received_bytes_total", "Bytes that clients sent.", TCP);
  const sent = registry.counter("downstream_sent_bytes_total", "Bytes that clients were sent.", TCP);
  const bounded = createBound();
  return {
    connections({ bind, gateway, protocol }) {
      // Which listener a connection is for shows with its requests.
      const labels = [bind, gateway, "unknown", protocol];
      return {
        opened: () => connections.add(labels, 1),
        closed(receivedBytes, sentBytes) {
          received.add(labels, receivedBytes);
          sent.add(labels, sentBytes);
        },
      };
    },
    request(sample) {
      const method = METHODS.has(sample.method) ? sample.method : "other";
      const place = [sample.bind, sample.gateway, sample.listener, sample.route, sample.routeRule];
      const labels = [sample.backend, sample.protocol, method, String(sample.status), sample.reason, ...place];
      requests.add(labels, 1);
      bytes.add(labels, sample.responseBytes);
      duration.observe(labels, sample.durationSeconds);
      if (FAILURES.has(sample.reason)) failures.add([sample.backend, sample.reason], 1);
      const { llm } = sample;
      if (llm === undefined) return;
      const model = bounded("request", llm.requestModel);
      const gen = [llm.operation, llm.system, model, bounded("response", llm.responseModel), ...place];
      generation.observe(gen, sample.durationSeconds);
      for (const [type, count] of Object.entries(llm.tokens))
        if (count !== undefined) tokens.observe([type, ...gen], count);
    },
    gauge: (name, help, read) => registry.gauge(name, help, read),
    threadReplaced: () => replaced.add([], 1),
    take: () => registry.take(),
    add: (counted) => registry.add(counted),
    print: () => registry.print(),
  };
}

const MAX_DISTINCT = 1000;
const MAX_LENGTH = 128;

/** Values that clients choose must not fill the memory: beyond a number of distinct ones they are "other". */
function createBound(): (label: string, value: string) => string {
  const seen = new Map<string, Set<string>>();
  return (label, value) => {
    let values = seen.get(label);
    if (values === undefined) seen.set(label, (values = new Set()));
    const cut = value.slice(0, MAX_LENGTH);
    if (values.has(cut)) return cut;
    if (values.size >= MAX_DISTINCT) return "other";
    values.add(cut);
    return cut;
  };
}

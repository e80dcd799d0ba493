/**
 * Every metric of a data plane: name, help and labels. The registry, the page docs/reference/metrics.md and the list of
 * label names that users may not use are all made from this table.
 */

export const METRIC_PREFIX = "gwproxy_";

/** Labels for where a request was served. Metrics that have all of these also get the labels of `frontend.metrics`. */
const PLACE = ["bind", "gateway", "listener", "route", "route_rule"];
const CLIENT_CONNECTION = ["bind", "gateway", "listener", "protocol"];
const MODEL = ["gen_ai_operation_name", "gen_ai_system", "gen_ai_request_model", "gen_ai_response_model"];

/** One set of labels and all metrics that share it. */
export interface MetricGroup<Counters extends string = string, Histograms extends string = string> {
  readonly labels: readonly string[];
  /** Labels whose values clients choose; the number of distinct values is bounded. */
  readonly clientChosen?: readonly string[];
  /** Maps the name of a counter to its help text. */
  readonly counters: Readonly<Record<Counters, string>>;
  readonly histograms: Readonly<Record<Histograms, HistogramSpec>>;
}

export interface HistogramSpec {
  readonly help: string;
  /** Upper bounds of the buckets, ascending, without infinity. */
  readonly bounds: readonly number[];
}

/** A value that is read when the metrics are printed. */
export interface ObservableSpec {
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  readonly help: string;
  /** True when every thread contributes a part of the value, or a series of its own. */
  readonly ofThreads?: boolean;
}

/** Bounds for request durations, in seconds. */
const REQUEST_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80];
/** Bounds for connecting, in seconds. */
const CONNECT_SECONDS = [0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8];
/** Bounds for processing inside the proxy, in seconds. */
const PROCESSING_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];
/** Bounds for numbers of tokens. */
const TOKEN_COUNTS = Array.from({ length: 14 }, (_, power) => 4 ** power);
/** Bounds for LLM responses, for single tokens and for the first token, in seconds. */
const GENERATION_SECONDS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);
const TOKEN_SECONDS = [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const FIRST_TOKEN_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

interface MetricTable {
  readonly requests: MetricGroup<"requests_total" | "response_bytes_total" | "retries_total", never>;
  /** Separate from the counters with the same labels: a histogram admits fewer distinct values that clients choose. */
  readonly durations: MetricGroup<never, "request_duration_seconds">;
  readonly processing: MetricGroup<never, "request_processing_seconds" | "response_processing_seconds">;
  readonly tokens: MetricGroup<never, "gen_ai_client_token_usage">;
  readonly models: MetricGroup<
    never,
    "gen_ai_server_request_duration" | "gen_ai_server_time_per_output_token" | "gen_ai_server_time_to_first_token"
  >;
  readonly guards: MetricGroup<"guardrail_checks_total", never>;
  readonly agents: MetricGroup<"a2a_requests_total", never>;
  readonly tools: MetricGroup<"mcp_requests_total", never>;
  readonly costs: MetricGroup<"gen_ai_client_cost_usd_total", never>;
  readonly lookups: MetricGroup<"cost_catalog_lookups_total", never>;
  readonly connections: MetricGroup<
    "downstream_connections_total" | "downstream_received_bytes_total" | "downstream_sent_bytes_total",
    "tls_handshake_duration_seconds"
  >;
  readonly connects: MetricGroup<never, "upstream_connect_duration_seconds">;
  readonly calls: MetricGroup<never, "upstream_call_duration_seconds">;
  readonly credentials: MetricGroup<"credential_fetches_total", never>;
  readonly credentialTimes: MetricGroup<never, "credential_fetch_seconds">;
  readonly failures: MetricGroup<"upstream_failures_total", never>;
  readonly ejections: MetricGroup<"endpoint_ejections_total", never>;
  readonly picks: MetricGroup<"endpoint_picker_requests_total", never>;
  readonly pickTimes: MetricGroup<never, "endpoint_picker_seconds">;
  readonly logDropped: MetricGroup<"log_dropped_total", never>;
  readonly otlpDropped: MetricGroup<"otlp_dropped_total", never>;
  readonly controllerStreams: MetricGroup<"xds_connection_terminations_total", never>;
  readonly controllerMessages: MetricGroup<"xds_message_total" | "xds_message_bytes_total", never>;
  readonly threads: MetricGroup<"thread_restarts_total", never>;
}

const REQUEST = ["backend", "protocol", "method", "status", "reason", ...PLACE];

export const METRICS: MetricTable = {
  requests: {
    labels: REQUEST,
    counters: {
      requests_total: "Requests answered.",
      response_bytes_total: "Bytes of answer bodies.",
      retries_total: "Calls of a backend that were made again, of all requests.",
    },
    histograms: {},
  },
  durations: {
    labels: REQUEST,
    counters: {},
    histograms: { request_duration_seconds: { help: "From arrival to the last byte.", bounds: REQUEST_SECONDS } },
  },
  processing: {
    labels: ["backend", "protocol", ...PLACE],
    counters: {},
    histograms: {
      request_processing_seconds: { help: "From arrival to the first call of a backend.", bounds: PROCESSING_SECONDS },
      response_processing_seconds: {
        help: "From the head of the backend's answer to the last byte.",
        bounds: PROCESSING_SECONDS,
      },
    },
  },
  tokens: {
    labels: ["gen_ai_token_type", ...MODEL, ...PLACE],
    clientChosen: ["gen_ai_request_model", "gen_ai_response_model"],
    counters: {},
    histograms: { gen_ai_client_token_usage: { help: "Tokens per LLM request.", bounds: TOKEN_COUNTS } },
  },
  models: {
    labels: [...MODEL, ...PLACE],
    clientChosen: ["gen_ai_request_model", "gen_ai_response_model"],
    counters: {},
    histograms: {
      gen_ai_server_request_duration: { help: "Seconds of LLM requests.", bounds: GENERATION_SECONDS },
      gen_ai_server_time_per_output_token: { help: "Seconds per token after the first one.", bounds: TOKEN_SECONDS },
      gen_ai_server_time_to_first_token: {
        help: "Seconds until a stream brings its first token.",
        bounds: FIRST_TOKEN_SECONDS,
      },
    },
  },
  guards: {
    labels: ["phase", "action", ...PLACE],
    counters: { guardrail_checks_total: "Checks of prompt guards." },
    histograms: {},
  },
  agents: {
    labels: ["method", "status", ...PLACE],
    counters: {
      a2a_requests_total:
        "Calls of A2A agents by method, with the outcome `success`, `error` or `unknown`; a method that the protocol does not have is `other`.",
    },
    histograms: {},
  },
  tools: {
    labels: ["method", "resource_type", "server", "resource", ...PLACE],
    clientChosen: ["resource"],
    counters: {
      mcp_requests_total:
        "Messages of MCP clients by method and target, with the name of the tool or prompt; a method that the protocol does not have is `unknown`.",
    },
    histograms: {},
  },
  costs: {
    labels: [...MODEL, ...PLACE],
    clientChosen: ["gen_ai_request_model", "gen_ai_response_model"],
    counters: { gen_ai_client_cost_usd_total: "Dollars that LLM requests cost, by the model catalog." },
    histograms: {},
  },
  lookups: {
    labels: ["status", ...MODEL, ...PLACE],
    clientChosen: ["gen_ai_request_model", "gen_ai_response_model"],
    counters: {
      cost_catalog_lookups_total:
        "Look-ups of models in the catalog: `Exact`, `Unpriced` where a rate is missing, `Missing`, `NoCatalog`.",
    },
    histograms: {},
  },
  connections: {
    labels: CLIENT_CONNECTION,
    counters: {
      downstream_connections_total: "Connections of clients taken.",
      downstream_received_bytes_total: "Bytes that clients sent.",
      downstream_sent_bytes_total: "Bytes that clients were sent.",
    },
    histograms: { tls_handshake_duration_seconds: { help: "TLS handshakes with clients.", bounds: CONNECT_SECONDS } },
  },
  connects: {
    labels: ["transport"],
    counters: {},
    histograms: {
      upstream_connect_duration_seconds: {
        help: "From the look-up of a name to a usable connection.",
        bounds: CONNECT_SECONDS,
      },
    },
  },
  calls: {
    labels: ["kind", "subtype"],
    counters: {},
    histograms: {
      upstream_call_duration_seconds: { help: "From a call to the head of its answer.", bounds: REQUEST_SECONDS },
    },
  },
  credentials: {
    labels: ["kind", "result"],
    counters: { credential_fetches_total: "Credentials for backends that were asked for." },
    histograms: {},
  },
  credentialTimes: {
    labels: ["kind"],
    counters: {},
    histograms: { credential_fetch_seconds: { help: "Seconds until a credential came.", bounds: REQUEST_SECONDS } },
  },
  failures: {
    labels: ["backend", "reason"],
    counters: { upstream_failures_total: "Requests that an upstream failed." },
    histograms: {},
  },
  ejections: {
    labels: ["backend"],
    counters: { endpoint_ejections_total: "Endpoints put out of rotation." },
    histograms: {},
  },
  picks: {
    labels: ["backend", "result"],
    counters: {
      endpoint_picker_requests_total:
        "Questions to the endpoint picker of an InferencePool: `picked`, `answered` with a response of its own, `failed_open`, `failed`, `cancelled` where the request ended before.",
    },
    histograms: {},
  },
  pickTimes: {
    labels: ["backend"],
    counters: {},
    histograms: {
      endpoint_picker_seconds: { help: "Seconds until an endpoint picker chose.", bounds: REQUEST_SECONDS },
    },
  },
  logDropped: {
    labels: ["signal"],
    counters: { log_dropped_total: "Lines that were given up because their reader did not keep up." },
    histograms: {},
  },
  otlpDropped: {
    labels: ["signal"],
    counters: { otlp_dropped_total: "Records and spans that no collector took." },
    histograms: {},
  },
  controllerStreams: {
    labels: ["reason"],
    counters: { xds_connection_terminations_total: "Streams of configuration that ended." },
    histograms: {},
  },
  controllerMessages: {
    labels: ["url"],
    counters: {
      xds_message_total: "Messages of the controller.",
      xds_message_bytes_total: "Bytes of the messages of the controller.",
    },
    histograms: {},
  },
  threads: {
    labels: [],
    counters: { thread_restarts_total: "Threads that died and were replaced." },
    histograms: {},
  },
};

export type ObservableName =
  | "build_info"
  | "config_synchronized"
  | "endpoint_health"
  | "upstream_pool_connections"
  | "nodejs_eventloop_lag_seconds"
  | "nodejs_eventloop_lag_max_seconds"
  | "nodejs_eventloop_utilization_ratio"
  | "nodejs_heap_used_bytes"
  | "nodejs_heap_total_bytes"
  | "nodejs_external_memory_bytes"
  | "nodejs_active_handles"
  | "process_cpu_seconds_total"
  | "process_resident_memory_bytes"
  | "process_start_time_seconds";

export const OBSERVABLES: Readonly<Record<ObservableName, ObservableSpec>> = {
  build_info: { type: "gauge", labels: ["tag"], help: "Build of this process; always 1." },
  config_synchronized: { type: "gauge", labels: [], help: "Whether the configuration in force is followed: 1 or 0." },
  endpoint_health: { type: "gauge", labels: ["backend", "endpoint"], help: "Health of an endpoint, 0 to 1." },
  upstream_pool_connections: {
    type: "gauge",
    labels: ["backend", "state"],
    help: "Connections to a backend: active ones serve a request, idle ones wait for one.",
    ofThreads: true,
  },
  nodejs_eventloop_lag_seconds: {
    type: "gauge",
    labels: ["thread"],
    help: "How late the event loop was since the last reading, on average.",
    ofThreads: true,
  },
  nodejs_eventloop_lag_max_seconds: {
    type: "gauge",
    labels: ["thread"],
    help: "How late the event loop was since the last reading, at most.",
    ofThreads: true,
  },
  nodejs_eventloop_utilization_ratio: {
    type: "gauge",
    labels: ["thread"],
    help: "Share of the time since the last reading in which the event loop was busy.",
    ofThreads: true,
  },
  nodejs_heap_used_bytes: { type: "gauge", labels: ["thread"], help: "Heap in use.", ofThreads: true },
  nodejs_heap_total_bytes: { type: "gauge", labels: ["thread"], help: "Heap taken from the system.", ofThreads: true },
  nodejs_external_memory_bytes: {
    type: "gauge",
    labels: ["thread"],
    help: "Memory outside the heap that objects hold, buffers included.",
    ofThreads: true,
  },
  nodejs_active_handles: { type: "gauge", labels: ["thread"], help: "Sockets, timers and the like.", ofThreads: true },
  process_cpu_seconds_total: { type: "counter", labels: [], help: "CPU time of all threads." },
  process_resident_memory_bytes: { type: "gauge", labels: [], help: "Memory that the process holds." },
  process_start_time_seconds: { type: "gauge", labels: [], help: "Start of the process, in seconds since 1970." },
};

/** The table with its most general type, for iteration. */
export const GROUPS: readonly MetricGroup[] = Object.values(METRICS);

/** Returns whether the group gets the labels of `frontend.metrics`. */
export function isOfRequests({ labels }: MetricGroup): boolean {
  return PLACE.every((label) => labels.includes(label));
}

/**
 * Names reserved by Prometheus and for planned metrics of requests (guards, MCP): the list of taken names must not grow
 * later.
 */
const RESERVED = ["le", "quantile", "phase", "action", "resource_type", "server", "resource"];

/** Returns the names that a label of a user must not have, because a metric that it would be added to uses them. */
export function reservedLabels(): readonly string[] {
  return [...new Set([...GROUPS.filter(isOfRequests).flatMap(({ labels }) => labels), ...RESERVED])].sort();
}

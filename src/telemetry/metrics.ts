/**
 * The metrics of a data plane, in the Prometheus text format. Label values are bounded by configuration (names of
 * gateways, routes, backends, reasons) and by the classes below; nothing that a client sends becomes a label.
 */
import type { RequestRecord } from "./request-record.ts";

export interface Metrics {
  request(record: RequestRecord): void;
  /** The whole exposition. */
  render(): string;
}

const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const KNOWN_METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);

type Labels = Readonly<Record<string, string>>;

interface Histogram {
  readonly counts: number[];
  sum: number;
  count: number;
}

export function createMetrics(): Metrics {
  const requests = new Map<string, number>();
  const durations = new Map<string, Histogram>();
  const tokens = new Map<string, number>();
  const bytes = new Map<string, number>();

  return {
    request(record) {
      const { gateway, listener, route, backend, reason, status, llm } = record;
      const method = KNOWN_METHODS.has(record.method) ? record.method : "other";
      const place = { gateway, listener, route };
      increase(requests, printLabels({ ...place, backend, method, status: String(status), reason }), 1);
      observe(durations, printLabels(place), record.durationMs / 1000);
      increase(bytes, printLabels({ ...place, direction: "request" }), record.requestBytes);
      increase(bytes, printLabels({ ...place, direction: "response" }), record.responseBytes);
      if (llm === undefined) return;
      // The model is what a client typed; the provider and the direction are ours.
      const labels = { ...place, provider: llm.provider };
      increase(tokens, printLabels({ ...labels, type: "input" }), llm.inputTokens ?? 0);
      increase(tokens, printLabels({ ...labels, type: "output" }), llm.outputTokens ?? 0);
    },
    render: () =>
      [
        printCounter("gwproxy_requests_total", "Requests by place, status and reason.", requests),
        printCounter("gwproxy_bytes_total", "Body bytes by place and direction.", bytes),
        printCounter("gwproxy_llm_tokens_total", "LLM tokens by provider and type.", tokens),
        printHistogram("gwproxy_request_duration_seconds", "Time from the request head to the last byte of the answer.", durations),
      ].join(""),
  };
}

function increase(series: Map<string, number>, labels: string, by: number): void {
  series.set(labels, (series.get(labels) ?? 0) + by);
}

function observe(series: Map<string, Histogram>, labels: string, value: number): void {
  let histogram = series.get(labels);
  if (histogram === undefined) {
    histogram = { counts: DURATION_BUCKETS_S.map(() => 0), sum: 0, count: 0 };
    series.set(labels, histogram);
  }
  const bucket = DURATION_BUCKETS_S.findIndex((bound) => value <= bound);
  if (bucket >= 0) histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + 1;
  histogram.sum += value;
  histogram.count++;
}

function printLabels(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`)
    .join(",");
}

function printCounter(name: string, help: string, series: ReadonlyMap<string, number>): string {
  const lines = [...series].map(([labels, value]) => `${name}{${labels}} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} counter\n${lines.join("")}`;
}

function printHistogram(name: string, help: string, series: ReadonlyMap<string, Histogram>): string {
  const lines = [...series].flatMap(([labels, { counts, sum, count }]) => {
    let total = 0;
    const buckets = DURATION_BUCKETS_S.map((bound, at) => {
      total += counts[at] ?? 0;
      return `${name}_bucket{${labels},le="${bound}"} ${total}\n`;
    });
    return [...buckets, `${name}_bucket{${labels},le="+Inf"} ${count}\n`, `${name}_sum{${labels}} ${sum}\n`, `${name}_count{${labels}} ${count}\n`];
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join("")}`;
}

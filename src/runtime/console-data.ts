/**
 * Builds the answer of `/console/data` (src/console/data.ts) from the state of a data plane and its metrics. The admin
 * server asks for it every few seconds while the page is open, so every list has a bound.
 */
import type { BackendList, ConsoleData, EndpointData, ProcessData, TrafficData } from "../console/data.ts";
import type { Reading } from "../telemetry/registry.ts";
import type { ProxyState } from "../proxy/proxy.ts";
import type { AppliedUpdates } from "./applied-updates.ts";
import { backendName, describeConfiguration } from "./console-configuration.ts";
import { listUsage } from "./console-usage.ts";

export interface ConsoleQuery {
  /** Revision of the configuration that the page has already. */
  readonly known: string | undefined;
  /** Text that the names of listed endpoints or backends contain. */
  readonly backends: string | undefined;
  /** Label by which usage of models is added up. */
  readonly usage: string | undefined;
}

export interface ConsoleSources {
  readonly state: ProxyState;
  readonly applied: AppliedUpdates;
  readonly pending: ReadonlySet<string>;
  readonly source: ProcessData["source"];
  readonly version: string;
  /** Returns the series of a metric. */
  readonly read: (metric: string) => readonly Reading[];
  readonly now: Date;
}

export function buildConsoleData(sources: ConsoleSources, query: ConsoleQuery): ConsoleData {
  const { state, applied, read } = sources;
  return {
    process: describeProcess(sources),
    configuration: describeConfiguration(state, query.known, applied.appliedAt),
    refused: applied.refusals(),
    traffic: countTraffic(read("requests_total")),
    backends: listEndpoints(state, query.backends ?? ""),
    usage: listUsage(read, query.usage),
  };
}

function describeProcess({ pending, source, version, read, now }: ConsoleSources): ProcessData {
  const only = (metric: string): number => read(metric)[0]?.value ?? 0;
  return {
    version,
    node: process.versions.node,
    startedAt: new Date(only("process_start_time_seconds") * 1000).toISOString(),
    now: now.toISOString(),
    pending: [...pending],
    source,
    following: only("config_synchronized") === 1,
    threads: read("nodejs_heap_used_bytes").map(({ labels, value }) => ({
      name: labels["thread"] ?? "",
      heapUsedBytes: value,
    })),
    threadRestarts: only("thread_restarts_total"),
    residentBytes: only("process_resident_memory_bytes"),
  };
}

function countTraffic(readings: readonly Reading[]): TrafficData {
  let requests = 0;
  let failed = 0;
  for (const { labels, value } of readings) {
    requests += value;
    if (/^5\d\d$/.test(labels["status"] ?? "")) failed += value;
  }
  return { requests, failed };
}

const MAX_ENDPOINTS = 500;

function listEndpoints({ endpoints }: ProxyState, filter: string): BackendList {
  const wanted = filter.toLowerCase();
  const found = endpoints
    .map((dump): EndpointData => ({
      backend: backendName(dump.backend),
      endpoint: dump.endpoint,
      health: dump.health,
      latencySeconds: dump.requestLatency,
      pendingRequests: dump.pendingRequests,
      totalRequests: dump.totalRequests,
      failuresInARow: dump.consecutiveFailures,
      timesEjected: dump.timesEjected,
      ejectedUntil: dump.evictedUntil,
    }))
    .filter(({ backend, endpoint }) => `${backend} ${endpoint}`.toLowerCase().includes(wanted));
  found.sort(compareTrouble);
  const ejected = endpoints.filter(({ evictedUntil }) => evictedUntil !== null).length;
  return { endpoints: found.slice(0, MAX_ENDPOINTS), found: found.length, total: endpoints.length, ejected };
}

/** Ejected endpoints come first, then those of the worst health, then the busiest. */
function compareTrouble(a: EndpointData, b: EndpointData): number {
  return (
    Number(b.ejectedUntil !== null) - Number(a.ejectedUntil !== null) ||
    a.health - b.health ||
    b.totalRequests - a.totalRequests ||
    `${a.backend} ${a.endpoint}`.localeCompare(`${b.backend} ${b.endpoint}`)
  );
}

/** Statistics of one endpoint in the form that the admin interface shows (docs/reference/admin.md). */
import type { EndpointStats } from "./endpoint-stats.ts";

/** The latest time that a Date can represent. */
const LATEST_MS = 8.64e15;

export interface EndpointDump {
  readonly backend: string;
  /** Address and port, or the name of a provider. */
  readonly endpoint: string;
  readonly health: number;
  /** In seconds. */
  readonly requestLatency: number;
  readonly pendingRequests: number;
  readonly totalRequests: number;
  /** Failures in a row. */
  readonly consecutiveFailures: number;
  readonly timesEjected: number;
  /** RFC 3339; null while the endpoint is in rotation. */
  readonly evictedUntil: string | null;
}

export function dumpOf(backend: string, endpoint: string, record: EndpointStats, nowMs: number): EndpointDump {
  const evictedUntilMs = record.evictedUntilMs(nowMs);
  return {
    backend,
    endpoint,
    health: record.health,
    requestLatency: record.latencySeconds,
    pendingRequests: record.pending,
    totalRequests: record.total,
    consecutiveFailures: record.failures,
    timesEjected: record.evictions,
    evictedUntil: evictedUntilMs === undefined ? null : timeIn(evictedUntilMs - nowMs),
  };
}

/** Returns an RFC 3339 time. An upstream may have asked for a longer time than a Date can hold. */
function timeIn(ms: number): string {
  return new Date(Math.min(Date.now() + ms, LATEST_MS)).toISOString();
}

/** How one member of a set does, as the admin interface shows it (observability.md 5.1). */
import type { EndpointStats } from "./endpoint-stats.ts";

/** The last time that a Date can be. */
const LATEST_MS = 8.64e15;

export interface EndpointDump {
  readonly backend: string;
  /** Address and port, or the name of a provider. */
  readonly endpoint: string;
  readonly health: number;
  /** Seconds. */
  readonly requestLatency: number;
  readonly pendingRequests: number;
  readonly totalRequests: number;
  /** In a row. */
  readonly consecutiveFailures: number;
  readonly timesEjected: number;
  /** RFC 3339; null while it is in rotation. */
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

/** RFC 3339. An upstream may have asked for more time than dates can hold. */
function timeIn(ms: number): string {
  return new Date(Math.min(Date.now() + ms, LATEST_MS)).toISOString();
}

/** Gauges of the Node process and its threads (docs/reference/metrics.md). */
import { monitorEventLoopDelay, performance, type EventLoopUtilization } from "node:perf_hooks";
import type { Metrics } from "./metrics.ts";

/** Sampling interval of the event loop; shorter blocks are seen by chance only. */
const LOOK_EVERY_MS = 20;

/**
 * Registers the gauges of this thread; call it once in each thread.
 * @param thread value of the label
 */
export function observeThread(metrics: Metrics, thread: string): void {
  const delays = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS });
  delays.enable();
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  const observe = (name: Parameters<Metrics["observe"]>[0], read: () => number): void =>
    metrics.observe(name, () => [{ values: [thread], value: read() }]);
  // The histogram includes the sampling interval: subtract it.
  const late = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LOOK_EVERY_MS / 1000) : 0;
  observe("nodejs_eventloop_lag_seconds", () => late(delays.mean));
  observe("nodejs_eventloop_lag_max_seconds", () => {
    const { max, count } = delays;
    // Reset here, because this is the second of the two gauges that are read.
    delays.reset();
    return count === 0 ? 0 : late(max);
  });
  observe("nodejs_eventloop_utilization_ratio", () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  });
  observe("nodejs_heap_used_bytes", () => process.memoryUsage().heapUsed);
  observe("nodejs_heap_total_bytes", () => process.memoryUsage().heapTotal);
  observe("nodejs_external_memory_bytes", () => process.memoryUsage().external);
  observe("nodejs_active_handles", () => process.getActiveResourcesInfo().length);
}

/** Registers the gauges of the process; call it once. */
export function observeProcess(metrics: Metrics): void {
  const observe = (name: Parameters<Metrics["observe"]>[0], read: () => number): void =>
    metrics.observe(name, () => [{ values: [], value: read() }]);
  const startedAtSeconds = Date.now() / 1000 - process.uptime();
  observe("process_cpu_seconds_total", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  observe("process_resident_memory_bytes", () => process.memoryUsage.rss());
  observe("process_start_time_seconds", () => startedAtSeconds);
}

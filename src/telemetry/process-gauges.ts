/** What Node knows about this process and its threads, for the metrics of a data plane (observability.md 2). */
import { monitorEventLoopDelay, performance, type EventLoopUtilization } from "node:perf_hooks";
import type { Metrics } from "./metrics.ts";

/** How often the event loop is looked at: what blocks it for less is seen by chance. */
const LOOK_EVERY_MS = 20;

/** To be called once in each thread. @param thread its name in the label */
export function tellThread(metrics: Metrics, thread: string): void {
  const delays = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS });
  delays.enable();
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  const tell = (name: Parameters<Metrics["reading"]>[0], read: () => number): void =>
    metrics.reading(name, () => [{ values: [thread], value: read() }]);
  // A look is late by as much as it comes after its time.
  const late = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LOOK_EVERY_MS / 1000) : 0;
  tell("nodejs_eventloop_lag_seconds", () => late(delays.mean));
  tell("nodejs_eventloop_lag_max_seconds", () => {
    const { max, count } = delays;
    // The last of the two to be read begins anew.
    delays.reset();
    return count === 0 ? 0 : late(max);
  });
  tell("nodejs_eventloop_utilization_ratio", () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  });
  tell("nodejs_heap_used_bytes", () => process.memoryUsage().heapUsed);
  tell("nodejs_heap_total_bytes", () => process.memoryUsage().heapTotal);
  tell("nodejs_external_memory_bytes", () => process.memoryUsage().external);
  tell("nodejs_active_handles", () => process.getActiveResourcesInfo().length);
}

/** To be called once in the process. */
export function tellProcess(metrics: Metrics): void {
  const tell = (name: Parameters<Metrics["reading"]>[0], read: () => number): void =>
    metrics.reading(name, () => [{ values: [], value: read() }]);
  const startedAtSeconds = Date.now() / 1000 - process.uptime();
  tell("process_cpu_seconds_total", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  tell("process_resident_memory_bytes", () => process.memoryUsage.rss());
  tell("process_start_time_seconds", () => startedAtSeconds);
}

/** The metrics of a controller, and their text form for Prometheus. Gateways are named "namespace/name". */
import { createRegistry } from "./registry.ts";

export interface ControllerMetrics {
  /** One batch of events was taken in. */
  translated(seconds: number): void;
  /** A data plane refused a resource of this type. */
  refused(gateway: string, type: string): void;
  /** Prometheus text 0.0.4. */
  print(): string;
}

/** What others know, read when it is asked for. */
export interface ControllerGauges {
  readonly version: string;
  readonly isLeader: () => boolean;
  /** Gateways with the number of their data planes that are connected. */
  readonly connected: () => Iterable<readonly [gateway: string, dataPlanes: number]>;
  readonly memoryBytes: () => number;
}

const SECONDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

export function createControllerMetrics(gauges: ControllerGauges): ControllerMetrics {
  const registry = createRegistry("gwproxy_controller_");
  registry.counter("build_info", "Build of this process.", ["tag"], "gauge").add([gauges.version], 1);
  const single = (read: () => number) => () => [{ labels: {}, value: read() }];
  registry.gauge(
    "leader",
    "Whether this replica writes.",
    single(() => Number(gauges.isLeader())),
  );
  registry.gauge("resident_memory_bytes", "Memory of this process.", single(gauges.memoryBytes));
  registry.gauge("xds_connections", "Data planes that are connected.", () =>
    [...gauges.connected()].map(([gateway, value]) => ({ labels: { gateway }, value })),
  );
  const rejects = registry.counter("xds_rejects_total", "Resources that a data plane refused.", ["gateway", "type"]);
  const duration = registry.histogram("translation_duration_seconds", "From events to resources.", [], SECONDS);
  return {
    translated: (seconds) => duration.observe([], seconds),
    refused: (gateway, type) => rejects.add([gateway, type], 1),
    print: () => registry.print(),
  };
}

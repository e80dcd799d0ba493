/** The metrics of a controller and their text form for Prometheus. Gateways are named "namespace/name". */
import type { MetricFormat } from "./exposition.ts";
import { Registry } from "./registry.ts";

export interface ControllerMetrics {
  /** Records the translation of one batch of events. */
  translated(seconds: number): void;
  /** Records that a data plane rejected a resource of this type. */
  refused(gateway: string, type: string): void;
  print(format: MetricFormat): string;
}

/** Values that are read when the metrics are printed. */
export interface ControllerGauges {
  readonly version: string;
  readonly isLeader: () => boolean;
  /** Maps a Gateway to the number of its connected data planes. */
  readonly connected: () => Iterable<readonly [gateway: string, dataPlanes: number]>;
  readonly memoryBytes: () => number;
}

const SECONDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

export function createControllerMetrics(gauges: ControllerGauges): ControllerMetrics {
  const registry = new Registry("gwproxy_controller_");
  const gauge = (name: string, help: string, read: () => number): void =>
    registry.observe(name, { type: "gauge", labels: [], help }, () => [{ values: [], value: read() }]);
  registry.observe("build_info", { type: "gauge", labels: ["tag"], help: "Build of this process." }, () => [
    { values: [gauges.version], value: 1 },
  ]);
  gauge("leader", "Whether this replica writes.", () => Number(gauges.isLeader()));
  gauge("resident_memory_bytes", "Memory of this process.", gauges.memoryBytes);
  const connected = { type: "gauge", labels: ["gateway"], help: "Data planes that are connected." } as const;
  registry.observe("xds_connections", connected, () =>
    Array.from(gauges.connected(), ([gateway, value]) => ({ values: [gateway], value })),
  );
  const rejects = registry.group({
    labels: ["gateway", "type"],
    counters: { xds_rejects_total: "Resources that a data plane refused." },
    histograms: {},
  });
  const translations = registry.group({
    labels: [],
    counters: {},
    histograms: { translation_duration_seconds: { help: "From events to resources.", bounds: SECONDS } },
  });
  return {
    translated: (seconds) =>
      translations.histograms.translation_duration_seconds.observe(translations.row([]), seconds),
    refused: (gateway, type) => rejects.counters.xds_rejects_total.add(rejects.row([gateway, type]), 1),
    print: (format) => registry.print(format),
  };
}

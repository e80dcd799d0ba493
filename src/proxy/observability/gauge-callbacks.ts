/** What the data plane knows at any moment, as the metrics tell it (observability.md 2). */
import type { GaugeCallback } from "../../telemetry/exposition.ts";
import { backendName } from "../backends/backend-name.ts";
import type { EndpointDump } from "../balancing/endpoint-dump.ts";
import type { Upstream } from "../upstream/upstream.ts";

/** `endpoint_health` */
export function healthReadings(endpoints: readonly EndpointDump[]): GaugeCallback[] {
  return endpoints.map(({ backend, endpoint, health }) => ({
    values: [backendName(backend), endpoint],
    value: health,
  }));
}

/** `upstream_pool_connections` */
export function poolReadings(upstream: Pick<Upstream, "connections">): GaugeCallback[] {
  return [...upstream.connections()].flatMap(([key, { active, idle }]) => {
    const backend = key === "" ? "unknown" : backendName(key);
    return [
      { values: [backend, "active"], value: active },
      { values: [backend, "idle"], value: idle },
    ];
  });
}

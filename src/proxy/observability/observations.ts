/** Values of the gauges that show the current state of the data plane (docs/reference/metrics.md). */
import type { Observation } from "../../telemetry/exposition.ts";
import { backendName } from "../backends/backend-name.ts";
import type { EndpointDump } from "../balancing/endpoint-dump.ts";
import type { Upstream } from "../upstream/upstream.ts";

/** Returns the values of `endpoint_health`. */
export function observeHealth(endpoints: readonly EndpointDump[]): Observation[] {
  return endpoints.map(({ backend, endpoint, health }) => ({
    values: [backendName(backend), endpoint],
    value: health,
  }));
}

/** Returns the values of `upstream_pool_connections`. */
export function observePools(upstream: Pick<Upstream, "connections">): Observation[] {
  return [...upstream.connections()].flatMap(([key, { active, idle }]) => {
    const backend = key === "" ? "unknown" : backendName(key);
    return [
      { values: [backend, "active"], value: active },
      { values: [backend, "idle"], value: idle },
    ];
  });
}

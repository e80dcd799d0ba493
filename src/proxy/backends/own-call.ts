/** Calls that the gateway makes on its own to a backend: their authority, and their place in statistics. The registry uses it. */
import type { Backend, StaticBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointState } from "../balancing/endpoints.ts";

/** Counts a call for the statistics of its endpoint. @returns a callback for its end */
export function beginCall({ record }: EndpointState): (healthy: boolean | undefined) => void {
  const startedMs = performance.now();
  record.begin();
  return (healthy) => {
    if (healthy === true) record.recordHealthy((performance.now() - startedMs) / 1000);
    if (healthy === false) record.recordUnhealthy();
    record.end();
  };
}

/** Returns the authority for requests that the gateway makes on its own. */
export function authorityOf({ kind }: Backend): string {
  switch (kind.case) {
    case "service":
      return `${kind.value.hostname}:${kind.value.port}`;
    case "static":
      return authorityOfStatic(kind.value);
    case "a2a":
      return kind.value.static === undefined ? "" : authorityOfStatic(kind.value.static);
    case "dynamic":
    case "ai":
    case "models":
    case "mcp":
    case "agentRuntime":
    case undefined:
      return "";
  }
}

function authorityOfStatic({ host, port, unixPath }: StaticBackend): string {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return unixPath === "" ? `${name}:${port}` : "localhost";
}

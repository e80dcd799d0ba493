/** Compiles the destination of a backend by its kind. The registry uses it for requests, raw connections and own calls. */
import type { Backend, BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import type { EndpointSet } from "../balancing/endpoints.ts";
import { replicaEntry } from "../exchange/cdn-loop.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { BackendDeps } from "./handler.ts";
import { agentRuntimeDestination } from "./agent-runtime.ts";
import { dynamicDestination } from "./dynamic.ts";
import {
  poolDestination,
  serviceDestination,
  staticDestination,
  type Destination,
  type DestinationDeps,
} from "./http-handler.ts";

interface CompileDeps extends DestinationDeps, Pick<BackendDeps, "pickerCallout" | "meter"> {
  /** Returns the endpoints of a Service port. */
  readonly endpoints: () => EndpointSet;
  /** Random name of this data plane in CDN-Loop (RFC 8586). */
  readonly replica: string;
}

/** @throws ProxyError backend_invalid for a kind that has no destination of its own */
export function compileDestination({ key, kind }: Backend, settings: BackendSettings, deps: CompileDeps): Destination {
  switch (kind.case) {
    case "static":
      return staticDestination(kind.value, settings, deps);
    case "a2a":
      if (kind.value.static === undefined) throw new ConfigError("an agent without an address");
      return staticDestination(kind.value.static, settings, deps);
    case "agentRuntime":
      return agentRuntimeDestination(kind.value, settings, deps);
    case "service":
      return serviceDestination(deps.endpoints(), kind.value, settings, deps);
    case "dynamic":
      return dynamicDestination(settings, deps, replicaEntry(deps.replica));
    case "inferencePool":
      return poolDestination(deps.endpoints(), kind.value, settings, deps);
    case "ai":
    case "models":
    case "mcp":
    case undefined:
      throw new ProxyError("backend_invalid", { detail: `${key} is no plain destination` });
  }
}

/** Where a target is: one address or name, or an endpoint of a Service that the session stays on. */
import type { BackendSettings, McpTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { staticDestination } from "../../backends/http-handler.ts";
import type { BackendDeps, ServiceEndpoint } from "../../backends/handler.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { connectionOf, nameOfTarget, type ConnectionSettings } from "../../upstream/dial/connection-settings.ts";

/**
 * Picks the endpoint of one call.
 * @param pinned name of the endpoint that a session stays on
 * @returns undefined when that endpoint is gone
 * @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused
 */
export type PickEndpoint = (pinned: string | undefined) => ServiceEndpoint | undefined;

/** @throws ConfigError when the target has no place */
export function compileEndpoint(node: McpTarget, settings: BackendSettings, deps: BackendDeps): PickEndpoint {
  const { place } = node;
  switch (place.case) {
    case "static": {
      const destination = staticDestination(place.value, settings, deps);
      const { name, record } = destination.pick();
      const target = destination.target(destination.pick());
      const usualPort = settings.tls === undefined ? 80 : 443;
      const authority = target.port === usualPort ? (destination.hostname ?? "") : nameOfTarget(target);
      const endpoint = { target, name, record, authority, auth: deps.auth(settings.auth), http: settings.http };
      return () => endpoint;
    }
    case "backend": {
      const own = { connection: deps.connection(settings), auth: deps.auth(settings.auth), http: settings.http };
      return (pinned) => withSettings(deps.serviceEndpoint(place.value, pinned), own);
    }
    case undefined:
      return () => {
        throw new ProxyError("backend_invalid", { detail: `target ${node.name} has no place` });
      };
  }
}

interface OwnSettings extends Pick<ServiceEndpoint, "auth" | "http"> {
  readonly connection: ConnectionSettings;
}

/** Adds the settings of the backend where the Service has none of its own. */
function withSettings(endpoint: ServiceEndpoint | undefined, own: OwnSettings): ServiceEndpoint | undefined {
  if (endpoint === undefined) return undefined;
  const { target, auth = own.auth, http = own.http } = endpoint;
  const { tls = own.connection.tls, tcp = own.connection.tcp, proxy = own.connection.proxy } = target;
  const isSame = tls === target.tls && tcp === target.tcp && proxy === target.proxy;
  return { ...endpoint, auth, http, target: isSame ? target : { ...target, ...connectionOf({ tls, tcp, proxy }) } };
}

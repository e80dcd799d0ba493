/**
 * The destination of a dynamic backend (dynamic forward proxy): the authority of the request after all policies, or the
 * server name of a connection. It restricts no destination itself; an authorization policy in front of it has to. The
 * registry creates it.
 */
import { HttpVersion, type BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { RecentMap } from "../../lib/recent-map.ts";
import { ProxyError } from "../exchange/errors.ts";
import { EndpointState } from "../balancing/endpoints.ts";
import type { RequestedAuthority, Destination, DestinationDeps } from "./http-handler.ts";

const AUTHORITY = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]\\%]+))(?::([0-9]{1,5}))?$/;
const DEFAULT_PORTS = { http: 80, https: 443 };
const MAX_PORT = 65_535;
/** Clients choose the names, so only this many are kept, least recently used first out (LRU). */
const KEPT = 1_024;

/** @param pass entry for CDN-Loop (RFC 8586) */
export function dynamicDestination(
  settings: BackendSettings,
  { record, connection, owner }: DestinationDeps,
  pass: string,
): Destination {
  const way = connection(settings);
  const endpoints = new RecentMap<string, EndpointState>(KEPT);
  // All destinations share one record: there is no choice among them, and their number is unbounded.
  const shared = record("any");
  const recordOf = (): typeof shared => shared;
  return {
    pick(_wish, asked) {
      if (asked === undefined) throw new ProxyError("backend_invalid", { detail: "nobody says where to go" });
      const key = `${asked.scheme} ${asked.host}`;
      let endpoint = endpoints.get(key);
      if (endpoint === undefined) {
        endpoints.set(key, (endpoint = new EndpointState(...hostAndPortOf(asked), recordOf)));
      }
      return endpoint;
    },
    target: (endpoint) => endpoint.target(way, "", owner),
    hostname: undefined,
    service: undefined,
    version: HttpVersion.UNSPECIFIED,
    followsRequest: true,
    rewritesHost: false,
    pass,
  };
}

/** @throws ProxyError request_invalid */
function hostAndPortOf({ host: authority, scheme }: RequestedAuthority): [string, number] {
  const [, six, host = six, digits] = AUTHORITY.exec(authority) ?? [];
  const port = digits === undefined ? DEFAULT_PORTS[scheme] : Number(digits);
  if (host === undefined || port < 1 || port > MAX_PORT)
    throw new ProxyError("request_invalid", { detail: "the request names no place to go to" });
  return [host.toLowerCase(), port];
}

/**
 * A target, and the settings that decide how connections to it are made: TLS, TCP and a forward proxy. `connectionOf`
 * interns the settings: equal blocks give the same object, so that targets and pools are found by identity in a WeakMap.
 * Backends build targets from them.
 */
import type { BackendTcp, BackendTls, DestinationScope } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export interface ConnectionSettings {
  readonly tls: BackendTls | undefined;
  /** undefined for the defaults. */
  readonly tcp: BackendTcp | undefined;
  /** undefined when connections go directly to the destination. */
  readonly proxy: ForwardProxy | undefined;
}

/** A proxy between the gateway and the destination. There is one object per distinct setting. */
export interface ForwardProxy {
  /** Equal for equal proxies; part of the key of a pool. */
  readonly key: string;
  /** True when plain HTTP goes through a tunnel as well, and not in absolute form (RFC 9112 §3.2.2). */
  readonly alwaysTunnels: boolean;
  /**
   * Chooses an endpoint of the proxy for one connection.
   * @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused
   */
  resolve(): ResolvedProxy;
}

export interface ResolvedProxy {
  /** Is never reached through another proxy. */
  readonly target: UpstreamTarget;
  /** Value of Proxy-Authorization (RFC 9110 §11.7.2). */
  readonly authorization: string | undefined;
  /**
   * Marks the beginning of a connection attempt.
   * @returns a callback for the outcome, which is undefined when the attempt was given up
   */
  begin(): (healthy: boolean | undefined) => void;
}

/** Key for an absent part, because a WeakMap accepts only objects. */
const NONE = {};
const known = new WeakMap<object, WeakMap<object, WeakMap<object, ConnectionSettings>>>();

export const PLAIN: ConnectionSettings = { tls: undefined, tcp: undefined, proxy: undefined };

export function connectionOf({ tls, tcp, proxy }: Partial<ConnectionSettings>): ConnectionSettings {
  if (tls === undefined && tcp === undefined && proxy === undefined) return PLAIN;
  const byProxy = below(below(known, tls ?? NONE), tcp ?? NONE);
  let connection = byProxy.get(proxy ?? NONE);
  if (connection === undefined) byProxy.set(proxy ?? NONE, (connection = { tls, tcp, proxy }));
  return connection;
}

function below<V extends WeakMap<object, unknown>>(map: WeakMap<object, V>, key: object): V {
  let value = map.get(key);
  // Each level of `known` is a WeakMap, and an empty one fits every level.
  if (value === undefined) map.set(key, (value = new WeakMap() as unknown as V));
  return value;
}

/** An address with the settings of its connections. Each distinct target has a pool of its own. */
export interface UpstreamTarget extends ConnectionSettings {
  readonly host: string;
  readonly port: number;
  /** Replaces host and port unless it is "". */
  readonly unixPath: string;
  /** Addresses that a static backend may reach; undefined when all are allowed. */
  readonly destinationScope?: DestinationScope | undefined;
  /**
   * Key of the backend that the connections are made for, as `Upstream.retire` names it; undefined when the connections
   * outlive changes of the backend. It is not part of the key of the pool.
   */
  readonly owner?: string | undefined;
}

/** Returns the name for logs: "host:port", or the path of a Unix socket. */
export function nameOfTarget({ host, port, unixPath }: Pick<UpstreamTarget, "host" | "port" | "unixPath">): string {
  if (unixPath !== "") return unixPath;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

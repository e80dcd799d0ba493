/**
 * Settings that decide how connections are made: TLS, TCP and a forward proxy. `connectionOf` interns them: equal
 * blocks give the same object, so that targets and pools are found by identity in a WeakMap. Backends build targets
 * from them.
 */
import type { BackendTcp, BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UpstreamTarget } from "./upstream.ts";

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
  reach(): ReachedProxy;
}

export interface ReachedProxy {
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

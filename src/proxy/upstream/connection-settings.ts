/**
 * How connections to a destination are made: the blocks of its settings that decide it, as one object. The same blocks
 * give the same object, so that what is kept for it (targets, pools) is found at once.
 */
import type { BackendTcp, BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UpstreamTarget } from "./upstream.ts";

export interface ConnectionSettings {
  readonly tls: BackendTls | undefined;
  /** undefined: as usual. */
  readonly tcp: BackendTcp | undefined;
  /** The proxy that connections go through; undefined: none. */
  readonly proxy: ForwardProxy | undefined;
}

/** A proxy between us and the destination (backend-policies.md 6). One object for one such setting. */
export interface ForwardProxy {
  /** The same for what is the same proxy. */
  readonly key: string;
  /** A tunnel even for plain HTTP, which otherwise is handed to the proxy in absolute form. */
  readonly alwaysTunnels: boolean;
  /** Chosen anew for each connection. @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused */
  reach(): ReachedProxy;
}

export interface ReachedProxy {
  /** Never through another proxy. */
  readonly target: UpstreamTarget;
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined;
  /** Says that a connection is being made. @returns what the outcome is told; undefined: given up */
  begin(): (healthy: boolean | undefined) => void;
}

/** Stands for a part that is not set, which no WeakMap takes. */
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

/**
 * How connections to a destination are made: the blocks of its settings that decide it, as one object. The same blocks
 * give the same object, so that what is kept for it (targets, pools) is found at once.
 */
import type { BackendSettings, BackendTcp, BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export interface Connection {
  readonly tls: BackendTls | undefined;
  /** undefined: as usual. */
  readonly tcp: BackendTcp | undefined;
}

/** Stands for a block that is not set, which no WeakMap takes. */
const NONE = {};
const known = new WeakMap<object, WeakMap<object, Connection>>();

export const PLAIN: Connection = { tls: undefined, tcp: undefined };

export function connectionOf({ tls, tcp }: Pick<BackendSettings, keyof Connection>): Connection {
  if (tls === undefined && tcp === undefined) return PLAIN;
  let byTcp = known.get(tls ?? NONE);
  if (byTcp === undefined) known.set(tls ?? NONE, (byTcp = new WeakMap()));
  let connection = byTcp.get(tcp ?? NONE);
  if (connection === undefined) byTcp.set(tcp ?? NONE, (connection = { tls, tcp }));
  return connection;
}

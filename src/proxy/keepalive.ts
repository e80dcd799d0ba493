/** TCP keepalive probes of client and upstream connections (RFC 9293 §3.8.4), with defaults for missing settings. */
import type { Socket } from "node:net";
import type { Keepalive } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export interface KeepaliveTimes {
  readonly timeMs: number;
  readonly intervalMs: number;
  readonly probes: number;
}

export function keepaliveTimes(keepalive: Keepalive | undefined): KeepaliveTimes {
  return {
    timeMs: keepalive?.timeMs || 180_000,
    intervalMs: keepalive?.intervalMs || 180_000,
    probes: keepalive?.probes || 9,
  };
}

export function keepAlive(socket: Socket, { timeMs, intervalMs, probes }: KeepaliveTimes): void {
  socket.setKeepAlive(true, timeMs, intervalMs, probes);
}

/** TCP keepalive probes of client and upstream connections (RFC 9293 §3.8.4), with defaults for missing settings. */
import type { Socket } from "node:net";

export interface KeepaliveTimes {
  readonly timeMs: number;
  readonly intervalMs: number;
  readonly probes: number;
}

/** @param keepalive zero and missing values take the default */
export function keepaliveTimes(keepalive: Partial<KeepaliveTimes> | undefined): KeepaliveTimes {
  return {
    timeMs: keepalive?.timeMs || 180_000,
    intervalMs: keepalive?.intervalMs || 180_000,
    probes: keepalive?.probes || 9,
  };
}

export function keepAlive(socket: Socket, { timeMs, intervalMs, probes }: KeepaliveTimes): void {
  socket.setKeepAlive(true, timeMs, intervalMs, probes);
}

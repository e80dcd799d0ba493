/** The interface of a connection pool for one target, and parts that the HTTP/1.1 and HTTP/2 pools share. */
import { isIP, type Socket } from "node:net";
import type { DialSettings } from "./dial/dial.ts";
import type { ConnectionCounts, UpstreamRequest, UpstreamResponse } from "./upstream.ts";
import type { UpstreamTarget } from "./dial/connection-settings.ts";

export interface PoolSettings extends DialSettings {
  readonly idleTimeoutMs: number;
}

/** The place of a call that waits for a connection. */
export interface WaitingPlace {
  /** Gives the place up, because the call is over. */
  leave(call: object): void;
}

/**
 * Returns the host name whose DNS answer limits which pooled connections may be reused: a connection to an address that
 * the name has given up takes no new call, but stays for a while in case the address comes back. Returns undefined for
 * Unix sockets and literal addresses, and behind a proxy, which looks names up itself.
 */
export function nameOf({ host, unixPath, proxy }: UpstreamTarget): string | undefined {
  return unixPath !== "" || proxy !== undefined || isIP(host) !== 0 ? undefined : host;
}

export interface Settle {
  resolve(response: UpstreamResponse): void;
  reject(error: Error): void;
}

export interface Pool {
  /** True when no connection is open or being opened. */
  readonly empty: boolean;
  readonly connections: ConnectionCounts;
  send(request: UpstreamRequest, settle: Settle): void;
  /** Takes over a connected socket whose handshake is complete. */
  adopt(socket: Socket): void;
  /** Lets no connection take another call: idle ones close now, the others after their calls. */
  drain(): void;
  /** Closes connections that have been idle for too long. */
  sweep(nowMs: number): void;
  close(): void;
}

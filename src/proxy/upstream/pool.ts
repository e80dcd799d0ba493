/** What the pools of connections to one target have in common, whatever protocol they speak. */
import { isIP, type Socket } from "node:net";
import type { DialSettings } from "./dial/dial.ts";
import type { UpstreamRequest, UpstreamResponse, UpstreamTarget } from "./upstream.ts";

export interface PoolSettings extends DialSettings {
  readonly idleTimeoutMs: number;
}

/** Where a call waits for its connection. */
export interface WaitingPlace {
  /** The call is over. */
  leave(call: object): void;
}

/**
 * The name whose addresses decide where connections may lead: one that it gave up takes no new call, though connections to
 * it stay for a while in case it comes back. undefined: there is none, or it is the business of a proxy.
 */
export function nameOf({ host, unixPath, proxy }: UpstreamTarget): string | undefined {
  return unixPath !== "" || proxy !== undefined || isIP(host) !== 0 ? undefined : host;
}

export interface Settle {
  resolve(response: UpstreamResponse): void;
  reject(error: Error): void;
}

/** How many connections are open: active ones serve a request, idle ones wait for one. */
export interface ConnectionCounts {
  readonly active: number;
  readonly idle: number;
}

export interface Pool {
  /** No connection is open or being opened. */
  readonly empty: boolean;
  readonly connections: ConnectionCounts;
  send(request: UpstreamRequest, settle: Settle): void;
  /** Takes over a socket whose handshake is done. */
  adopt(socket: Socket): void;
  /** What is open takes no new call: it ends now if it is idle, else with its calls. */
  drain(): void;
  /** Closes what was idle for too long. */
  sweep(nowMs: number): void;
  close(): void;
}

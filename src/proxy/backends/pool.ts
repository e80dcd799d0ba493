/** What the pools of connections to one target have in common, whatever protocol they speak. */
import type { Socket } from "node:net";
import type { Resolver } from "./dns.ts";
import type { UpstreamRequest, UpstreamResponse } from "./upstream.ts";

export interface PoolSettings {
  readonly resolver: Resolver;
  /** From the look-up of the name to a usable connection, TLS included. */
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

export interface Settle {
  readonly resolve: (response: UpstreamResponse) => void;
  readonly reject: (error: Error) => void;
}

export interface Pool {
  /** No connection is open or being opened. */
  readonly empty: boolean;
  send(request: UpstreamRequest, settle: Settle): void;
  /** Takes over a socket whose handshake is done. */
  adopt(socket: Socket): void;
  /** Closes what was idle for too long. */
  sweep(nowMs: number): void;
  close(): void;
}

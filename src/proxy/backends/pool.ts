/** What the pools of connections to one target have in common, whatever protocol they speak. */
import type { Socket } from "node:net";
import type { DialSettings } from "./dial.ts";
import type { UpstreamRequest, UpstreamResponse } from "./upstream.ts";

export interface PoolSettings extends DialSettings {
  readonly idleTimeoutMs: number;
}

/** Where a call waits for its connection. */
export interface WaitingPlace {
  /** The call is over. */
  leave(call: object): void;
}

export interface Settle {
  resolve(response: UpstreamResponse): void;
  reject(error: Error): void;
}

export interface Pool {
  /** No connection is open or being opened. */
  readonly empty: boolean;
  send(request: UpstreamRequest, settle: Settle): void;
  /** Takes over a socket whose handshake is done. */
  adopt(socket: Socket): void;
  /** What is open takes no new call: it ends now if it is idle, else with its calls. */
  drain(): void;
  /** Closes what was idle for too long. */
  sweep(nowMs: number): void;
  close(): void;
}

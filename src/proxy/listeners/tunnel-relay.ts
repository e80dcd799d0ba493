/**
 * Relays bytes between a client and an upstream: TCP sessions, upgrades such as WebSocket, and CONNECT tunnels. Each
 * direction closes on its own, as TCP half-close allows:
 *
 *   both open ──one side ends──► half-closed ──the other ends, or 30 seconds──► both closed ──► onOver
 *       └──────── one side breaks: its unfinished counterpart is destroyed ───────────┘
 *
 * The limit on the half-closed state keeps a peer that never ends its side from holding two sockets forever.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ignore } from "../../lib/ignore.ts";

const HALF_CLOSED_MS = 30_000;

export class TunnelRelay {
  fromClient = 0;
  fromUpstream = 0;
  readonly #client: Duplex;
  readonly #upstream: Duplex;
  readonly #onOver: (relay: TunnelRelay) => void;
  #timer: NodeJS.Timeout | undefined;
  #open = 2;

  /** @param onOver called once, when both are closed */
  constructor(client: Duplex, upstream: Duplex, onOver: (relay: TunnelRelay) => void) {
    this.#client = client;
    this.#upstream = upstream;
    this.#onOver = onOver;
  }

  start(): void {
    const client = this.#client;
    const upstream = this.#upstream;
    for (const [side, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      if (side instanceof Socket) side.allowHalfOpen = true;
      side.on("error", ignore);
      side.on("end", this.#halfClosed.bind(this));
      side.on("close", this.#closed.bind(this, other));
    }
    client.on("data", this.#countUp.bind(this));
    upstream.on("data", this.#countDown.bind(this));
    client.pipe(upstream);
    upstream.pipe(client);
    // A side that broke before `start` has emitted its events already.
    if (client.destroyed) upstream.destroy();
    if (upstream.destroyed) client.destroy();
  }

  /** Stops the relay: bytes that were passed on are still delivered, and both sides are half-closed. */
  end(): void {
    for (const side of [this.#client, this.#upstream]) {
      side.unpipe();
      // Drop further bytes until this side ends too; a paused stream would never emit `end`.
      side.resume();
      side.end();
    }
    this.#halfClosed();
  }

  get isOver(): boolean {
    return this.#open === 0;
  }

  #countUp(chunk: Buffer): void {
    this.fromClient += chunk.length;
  }

  #countDown(chunk: Buffer): void {
    this.fromUpstream += chunk.length;
  }

  #halfClosed(): void {
    this.#timer ??= setTimeout(() => {
      this.#client.destroy();
      this.#upstream.destroy();
    }, HALF_CLOSED_MS);
  }

  /**
   * One side has closed. Destroy the other unless its last bytes are still being delivered; in that case drop what it
   * still sends, so that it reaches its end.
   */
  #closed(other: Duplex): void {
    if (!other.writableEnded) other.destroy();
    else other.resume();
    if (--this.#open > 0) return;
    clearTimeout(this.#timer);
    this.#onOver(this);
  }
}

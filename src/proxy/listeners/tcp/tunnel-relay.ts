/**
 * Two connections that have left HTTP, as one stream of bytes each way (proxying.md 10.1). Each direction ends for itself;
 * when one has, the other has half a minute left. A side that breaks breaks the other.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ignore } from "../../../lib/ignore.ts";

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
    // One that broke before it came here says so only once.
    if (client.destroyed) upstream.destroy();
    if (upstream.destroyed) client.destroy();
  }

  /** Nothing more is passed on; what was is still delivered, and each side hears the end. */
  end(): void {
    for (const side of [this.#client, this.#upstream]) {
      side.unpipe();
      // Until it ends as well, whatever it says.
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

  /** What was said last may still be on its way to the other side; what that one still says has nobody to hear it. */
  #closed(other: Duplex): void {
    if (!other.writableEnded) other.destroy();
    else other.resume();
    if (--this.#open > 0) return;
    clearTimeout(this.#timer);
    this.#onOver(this);
  }
}

/** A connection whose incoming bytes are looked at on their way. Neither side notices: bytes, pauses and ends stay. */
import { Socket } from "node:net";
import { Duplex } from "node:stream";

export class ObservedDuplex extends Duplex {
  readonly #inner: Duplex;

  /** @param inner is paused */
  constructor(inner: Duplex, observe: (chunk: Buffer) => void) {
    super({ allowHalfOpen: true });
    this.#inner = inner;
    // Each direction ends on its own, as the relay expects it of a socket.
    if (inner instanceof Socket) inner.allowHalfOpen = true;
    let hasEnded = false;
    inner.on("data", (chunk: Buffer) => {
      observe(chunk);
      if (!this.push(chunk)) inner.pause();
    });
    inner.pause();
    inner.on("end", () => {
      hasEnded = true;
      this.push(null);
    });
    inner.on("error", (error: Error) => this.destroy(error));
    inner.on("close", () => {
      if (!hasEnded) this.destroy();
      else if (this.readableEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  override _read(): void {
    this.#inner.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#inner.write(chunk, encoding, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#inner.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#inner.destroy(error ?? undefined);
    done(error);
  }
}

/**
 * A body that is copied while it passes, for those who look at it when all is over (runtime/cel.md 7): nobody waits for
 * it, and no more of it is kept than may be held.
 */
import type { BodySink, BodyStream } from "./body.ts";

export class WatchedBody implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #limitBytes: () => number;
  #sink: BodySink | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  /** @param limitBytes asked as the bytes come: a policy on the way may set another one */
  constructor(source: BodyStream, limitBytes: () => number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  /** All of it; null when it broke off, was given up or is longer than may be held. */
  get body(): Buffer | null {
    return this.#isOver && this.#bytes <= this.#limitBytes() ? this.prefix : null;
  }

  get prefix(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first !== undefined) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  get isComplete(): boolean | undefined {
    return this.#source.isComplete;
  }

  whole(): Buffer | undefined {
    const whole = this.#source.whole?.();
    if (whole !== undefined && !this.#isOver) {
      this.#keep(whole);
      this.#isOver = true;
    }
    return whole;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#sink = undefined;
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    this.#keep(chunk);
    return this.#sink?.data(chunk) ?? true;
  }

  end(trailers: readonly string[]): void {
    this.#isOver = true;
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    this.#sink?.error(error);
  }

  /** A copy: a chunk may be part of something much larger, or lent for this call alone. */
  #keep(chunk: Buffer): void {
    const room = this.#limitBytes() - this.#bytes;
    this.#bytes += chunk.length;
    if (room > 0 && chunk.length > 0) this.#chunks.push(Buffer.from(chunk.subarray(0, room)));
  }
}

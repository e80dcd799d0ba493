/**
 * Copies a body while it streams, for reports that read it after the end (access log, conversation). It adds no waiting
 * and keeps no more than the limit.
 */
import type { BodySink, BodyStream } from "./body.ts";

export class WatchedBody implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #limitBytes: () => number;
  #sink: BodySink | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  /** @param limitBytes evaluated for each chunk, because a policy may change the limit on the way */
  constructor(source: BodyStream, limitBytes: () => number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  /** The whole body; null when it broke off, was given up or is longer than the limit. */
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

  /** Copies the bytes: a chunk may be a view of a larger buffer, or be borrowed for this call only. */
  #keep(chunk: Buffer): void {
    const room = this.#limitBytes() - this.#bytes;
    this.#bytes += chunk.length;
    if (room > 0 && chunk.length > 0) this.#chunks.push(Buffer.from(chunk.subarray(0, room)));
  }
}

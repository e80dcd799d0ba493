/**
 * A request body that can be sent more than once (retries, pipeline/attempts.ts). Bytes are kept up to a limit while
 * they are sent; the next attempt replays them and continues with new ones. Nothing waits for the end of the body, so
 * both directions may stream.
 *
 *                     ┌─ Pass 1 (gave up: leave)
 *   client ─▶ record ─┤
 *             chunks  └─ Pass 2: replays the chunks, then follows the client
 *
 * The record owns the source and pauses it whenever the current pass has no room. A pass that is no longer current is
 * ignored. Once more than the limit was sent, the body is not repeatable, and chunks are dropped as soon as the current
 * pass has them.
 */
import type { Body, BodySink, BodyStream } from "./body.ts";

export class RecordedBody implements BodySink {
  readonly #source: BodyStream;
  readonly #limitBytes: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #pass: Pass | undefined;
  #state: "waiting" | "flowing" | "paused" = "waiting";
  #isLast = false;
  #trailers: readonly string[] | undefined;
  #failure: Error | undefined;

  constructor(source: BodyStream, limitBytes: number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  /** True when all of the body has arrived. */
  get isComplete(): boolean {
    return this.#trailers !== undefined;
  }

  /** False when more was sent than is kept, or the client broke off. */
  get isRepeatable(): boolean {
    return this.#bytes <= this.#limitBytes && this.#failure === undefined;
  }

  get trailers(): readonly string[] | undefined {
    return this.#trailers;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Returns the body from its first byte, for one attempt. */
  begin(): Body {
    if (this.#trailers?.length === 0 && this.isRepeatable) return Buffer.concat(this.#chunks);
    this.#pass = new Pass(this);
    return this.#pass;
  }

  /** Announces that the current attempt is the last one: when it gives up, the source is destroyed. */
  close(): void {
    this.#isLast = true;
    if (this.#pass === undefined && !this.isComplete) this.#source.destroy();
  }

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    const wantsMore = this.#pass?.send(this.#chunks) === true;
    // A body above the limit is never replayed: free the chunks that were sent.
    if (!this.isRepeatable && this.#pass !== undefined) this.#pass.forget(this.#chunks);
    if (!wantsMore) this.#state = "paused";
    return wantsMore;
  }

  end(trailers: readonly string[]): void {
    this.#trailers = trailers;
    this.#pass?.send(this.#chunks);
  }

  error(error: Error): void {
    this.#failure = error;
    this.#pass?.send(this.#chunks);
  }

  /** The reader of this pass has room. */
  flow(pass: Pass): void {
    if (pass !== this.#pass || !pass.send(this.#chunks) || this.isComplete || this.#failure !== undefined) return;
    const before = this.#state;
    this.#state = "flowing";
    if (before === "waiting") this.#source.read(this);
    else if (before === "paused") this.#source.resume();
  }

  /** The reader of this pass gave up; the recording stays for the next attempt. */
  leave(pass: Pass, error: Error | undefined): void {
    if (pass !== this.#pass) return;
    this.#pass = undefined;
    if (this.#isLast && !this.isComplete) this.#source.destroy(error);
  }
}

/** The body as one attempt reads it. */
class Pass implements BodyStream {
  readonly #record: RecordedBody;
  #sink: BodySink | undefined;
  /** Number of chunks that were handed over. */
  #sent = 0;
  #isPaused = false;
  #isOver = false;

  constructor(record: RecordedBody) {
    this.#record = record;
  }

  get isComplete(): boolean {
    return this.#record.isComplete;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#record.flow(this);
  }

  resume(): void {
    this.#isPaused = false;
    this.#record.flow(this);
  }

  destroy(error?: Error): void {
    this.#isOver = true;
    this.#record.leave(this, error);
  }

  /**
   * Hands over the chunks that are there.
   * @returns true when the reader wants more
   */
  send(chunks: readonly Buffer[]): boolean {
    const sink = this.#sink;
    if (sink === undefined) return false;
    while (!this.#isPaused && !this.#isOver && this.#sent < chunks.length)
      this.#isPaused = !sink.data(chunks[this.#sent++] as Buffer); // below the length
    if (this.#isOver || this.#sent < chunks.length) return false;
    const { trailers, failure } = this.#record;
    if (trailers === undefined && failure === undefined) return !this.#isPaused;
    this.#isOver = true;
    if (failure !== undefined) sink.error(failure);
    else sink.end(trailers ?? []);
    return false;
  }

  forget(chunks: Buffer[]): void {
    chunks.splice(0, this.#sent);
    this.#sent = 0;
  }
}

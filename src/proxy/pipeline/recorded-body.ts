/**
 * A request body that can be sent more than once: what went out is kept up to a limit, and the next call begins with it
 * and goes on with what arrives. Nothing waits for the end, so that both sides may stream (proxying.md 5).
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

  /** All of it has arrived. */
  get isComplete(): boolean {
    return this.#trailers !== undefined;
  }

  /** False: more was sent than is kept, or the client broke off. */
  get isRepeatable(): boolean {
    return this.#bytes <= this.#limitBytes && this.#failure === undefined;
  }

  get trailers(): readonly string[] | undefined {
    return this.#trailers;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The body from its first byte, for one call. */
  begin(): Body {
    if (this.#trailers?.length === 0 && this.isRepeatable) return Buffer.concat(this.#chunks);
    this.#pass = new Pass(this);
    return this.#pass;
  }

  /** No call comes after the one that has the body now. */
  close(): void {
    this.#isLast = true;
    if (this.#pass === undefined && !this.isComplete) this.#source.destroy();
  }

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    const wantsMore = this.#pass?.send(this.#chunks) === true;
    // What nobody can send again is not kept.
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

  leave(pass: Pass, error: Error | undefined): void {
    if (pass !== this.#pass) return;
    this.#pass = undefined;
    if (this.#isLast && !this.isComplete) this.#source.destroy(error);
  }
}

/** The body as one call reads it. */
class Pass implements BodyStream {
  readonly #record: RecordedBody;
  #sink: BodySink | undefined;
  /** Chunks that were handed over. */
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

  /** Hands over what is there. @returns whether more is wanted */
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

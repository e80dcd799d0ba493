/**
 * Feeds one request body to several readers, for mirrors. The first reader sets the pace. Copies that fall behind queue
 * their chunks, and a copy that would queue more than the limit breaks off, so that a slow mirror never slows the
 * request.
 */
import type { BodySink, BodyStream } from "./body.ts";

/** The body for the first reader; it feeds the copies on the way. */
export class Tee implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #copies: readonly BodyCopy[];
  #sink: BodySink | undefined;

  constructor(source: BodyStream, copies: readonly BodyCopy[]) {
    this.#source = source;
    this.#copies = copies;
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
    for (const copy of this.#copies) copy.fail(error ?? new Error("the request was given up"));
  }

  data(chunk: Buffer): boolean {
    for (const copy of this.#copies) copy.push(chunk);
    return this.#sink?.data(chunk) ?? true;
  }

  end(trailers: readonly string[]): void {
    for (const copy of this.#copies) copy.finish(trailers);
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    for (const copy of this.#copies) copy.fail(error);
    this.#sink?.error(error);
  }
}

/** One copy of the body, with its own queue. */
export class BodyCopy implements BodyStream {
  readonly #limit: number;
  #sink: BodySink | undefined;
  #flows = false;
  #queue: Buffer[] = [];
  #held = 0;
  #trailers: readonly string[] | undefined;
  #failure: Error | undefined;
  #over = false;

  /** @param limit bytes that may wait to be sent */
  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    if (this.#over) return;
    if (this.#flows && this.#sink !== undefined) {
      this.#flows = this.#sink.data(chunk);
      return;
    }
    this.#held += chunk.length;
    if (this.#held > this.#limit) this.fail(new Error(`more than ${this.#limit} bytes wait to be sent`));
    else this.#queue.push(chunk);
  }

  finish(trailers: readonly string[]): void {
    this.#trailers = trailers;
    if (this.#flows) this.#end();
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#queue = [];
    this.#failure = error;
    this.#sink?.error(error);
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failure !== undefined) sink.error(this.#failure);
    else this.resume();
  }

  resume(): void {
    if (this.#over || this.#sink === undefined) return;
    this.#flows = true;
    while (this.#flows) {
      const chunk = this.#queue.shift();
      if (chunk === undefined) break;
      this.#held -= chunk.length;
      this.#flows = this.#sink.data(chunk);
    }
    if (this.#flows) this.#end();
  }

  destroy(): void {
    this.#over = true;
    this.#sink = undefined;
    this.#queue = [];
  }

  #end(): void {
    if (this.#trailers === undefined || this.#over) return;
    this.#over = true;
    this.#sink?.end(this.#trailers);
  }
}

/** A request body as it comes off a connection, as a BodyStream. */
import type { Readable } from "node:stream";
import type { BodySink, BodyStream } from "../pipeline/body.ts";
import { forwardableTrailers } from "../pipeline/fields.ts";

/** Where a body comes from, whatever protocol its connection speaks. */
export interface BodySource {
  readonly stream: Readable;
  /** All of it has arrived. */
  readonly isComplete: boolean;
  /** Alternating names and values, once it is complete. */
  readonly trailers: readonly string[];
  /** Their names stay as they were written. */
  readonly keepsCase: boolean;
  /** Somebody reads it: a client that waits for "100 Continue" is told to go on, and no other. */
  wanted(): void;
}

export class IncomingBody implements BodyStream {
  bytes = 0;
  readonly #source: BodySource;
  #sink: BodySink | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  get isComplete(): boolean {
    return this.#source.isComplete;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.wanted();
    const { stream } = this.#source;
    stream.on("data", this.#data.bind(this));
    stream.on("end", this.#end.bind(this));
    stream.on("error", this.#fail.bind(this));
    stream.on("close", this.#closed.bind(this));
  }

  resume(): void {
    this.#source.stream.resume();
  }

  destroy(): void {
    this.#sink = undefined;
  }

  #data(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.#sink?.data(chunk) === false) this.#source.stream.pause();
  }

  #closed(): void {
    if (this.#sink !== undefined) this.#fail(new Error("client closed the connection"));
  }

  #end(): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.end(forwardableTrailers(this.#source.trailers, this.#source.keepsCase));
  }

  #fail(error: Error): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.error(error);
  }
}

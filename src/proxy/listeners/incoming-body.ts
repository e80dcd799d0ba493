/** A request body as it comes off a connection, as a BodyStream. */
import type { Readable } from "node:stream";
import { ProxyError } from "../errors.ts";
import type { BodySink, BodyStream } from "../pipeline/body.ts";
import { ROLE, fieldOf, forwardableTrailers } from "../pipeline/fields.ts";

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
  /** Told in place of the end when the trailers say what only a head may: whoever reads the body must not take it for whole. */
  onRefused: ((error: ProxyError) => void) | undefined;
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
    const { trailers, keepsCase } = this.#source;
    const detail = trailers.length === 0 ? undefined : refusedTrailer(trailers);
    if (detail === undefined) sink?.end(forwardableTrailers(trailers, keepsCase));
    else this.onRefused?.(new ProxyError("request_invalid", { detail }));
  }

  #fail(error: Error): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.error(error);
  }
}

/** What routes or frames a request behind its end (RFC 9110 6.5.1): somebody who merges it into the head reads another request. */
function refusedTrailer(raw: readonly string[]): string | undefined {
  for (let at = 0; at < raw.length; at += 2) {
    const { name, role } = fieldOf(raw[at] as string) ?? {};
    if (role === ROLE.host || role === ROLE.contentLength || role === ROLE.transferEncoding)
      return `${name} among the trailers`;
  }
  return undefined;
}

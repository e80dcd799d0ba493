/** A request body as a BodyStream with backpressure; both HTTP servers make one for each request with a body. */
import type { Readable } from "node:stream";
import { ProxyError } from "../exchange/errors.ts";
import type { BodySink, BodyStream } from "../exchange/body.ts";
import { ROLE, fieldOf, forwardableTrailers } from "../exchange/fields.ts";

/** The protocol-specific side of a request body. */
export interface BodySource {
  readonly stream: Readable;
  /** True when the whole body has arrived. */
  readonly isComplete: boolean;
  /** True when each chunk is a copy for its reader, which may free it. */
  readonly copiesChunks: boolean;
  /** Alternating names and values, filled once the body is complete. */
  readonly trailers: readonly string[];
  /** Keeps the spelling of trailer names. */
  readonly keepsCase: boolean;
  /** Called when a reader starts: sends "100 Continue" (RFC 9110 §10.1.1) if the client waits for it. */
  wanted(): void;
}

export class IncomingBody implements BodyStream {
  bytes = 0;
  /**
   * Called in place of the sink's `end` for forbidden trailers, so that the reader never takes the body as complete.
   */
  onRefused: ((error: ProxyError) => void) | undefined;
  readonly #source: BodySource;
  #sink: BodySink | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  get isComplete(): boolean {
    return this.#source.isComplete;
  }

  get givesChunks(): boolean {
    return this.#source.copiesChunks;
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

/**
 * Returns why trailers are refused: routing or framing fields behind the body (RFC 9110 §6.5.1). A recipient that
 * merges trailers into the head would read another request (request smuggling).
 */
function refusedTrailer(raw: readonly string[]): string | undefined {
  for (let at = 0; at < raw.length; at += 2) {
    const { name, role } = fieldOf(raw[at] as string) ?? {};
    if (role === ROLE.host || role === ROLE.contentLength || role === ROLE.transferEncoding)
      return `${name} among the trailers`;
  }
  return undefined;
}

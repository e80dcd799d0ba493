/** Answers on a stream of an HTTP/2 connection (node:http2). */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ResponseEncoder } from "../response-encoder.ts";

export class Http2ResponseEncoder implements ResponseEncoder {
  onDrain: (() => void) | undefined;
  onFinish: (() => void) | undefined;
  readonly #stream: ServerHttp2Stream;
  #trailers: readonly string[] = [];
  #isWaiting = false;
  #hasLeft = false;
  /** The last frame of the answer is still to be made. */
  #owesTrailers = false;

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
    stream.on("finish", this.#finished.bind(this));
    stream.on("wantTrailers", this.#sendTrailers.bind(this));
  }

  get headSent(): boolean {
    return this.#stream.headersSent;
  }

  get ended(): boolean {
    return this.#stream.writableEnded;
  }

  get gone(): boolean {
    return this.#stream.destroyed;
  }

  /** A stream ends by itself, and the connection lives on: `close` means nothing here. */
  head(status: number, headers: string[], _close: boolean, last: boolean): void {
    // gRPC clients take an answer of trailers alone only where the head itself ends the stream.
    this.#owesTrailers = !last;
    const options = last ? { endStream: true } : { waitForTrailers: true, endStream: false };
    this.#stream.respond([":status", String(status), ...headers], options);
  }

  end(body?: Buffer): void {
    if (this.#stream.writableEnded) return;
    if (body === undefined) this.#stream.end();
    else this.#stream.end(body);
  }

  write(chunk: Buffer): boolean {
    const more = this.#stream.write(chunk);
    if (!more && !this.#isWaiting) {
      this.#isWaiting = true;
      this.#stream.once("drain", this.#drained.bind(this));
    }
    return more;
  }

  trailers(raw: readonly string[]): void {
    this.#trailers = raw;
  }

  cut(resetCode: number = constants.NGHTTP2_CANCEL): void {
    this.#stream.close(resetCode);
  }

  #sendTrailers(): void {
    // A reset ends the stream too, and leaves no place for them.
    if (this.#stream.closed) return;
    // None at all is an empty last frame.
    const fields: Record<string, string | string[]> = {};
    for (let at = 0; at < this.#trailers.length; at += 2) {
      const name = this.#trailers[at] as string;
      const value = this.#trailers[at + 1] as string;
      const before = fields[name];
      fields[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
    }
    this.#stream.sendTrailers(fields);
    this.#owesTrailers = false;
    if (this.#stream.writableFinished) setImmediate(stopRequest, this.#stream);
  }

  #drained(): void {
    this.#isWaiting = false;
    this.onDrain?.();
  }

  /** The stream is somebody else's from here on. */
  protected leave(): void {
    this.#hasLeft = true;
  }

  #finished(): void {
    if (this.#hasLeft) return;
    if (!this.#owesTrailers) setImmediate(stopRequest, this.#stream);
    this.onFinish?.();
  }
}

/**
 * An answer may be over before the request is: the client is told to stop sending (RFC 9113 8.1). A turn later than
 * the last frame was made, or the reset would overtake it.
 */
function stopRequest(stream: ServerHttp2Stream): void {
  if (!stream.readableEnded && !stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Writes responses to an HTTP/2 stream through node:http2; the HTTP/2 server makes one per request. */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ResponseEncoder } from "../response-encoder.ts";

export class Http2ResponseEncoder implements ResponseEncoder {
  onDrain: (() => void) | undefined;
  onFinish: (() => void) | undefined;
  readonly #stream: ServerHttp2Stream;
  #trailers: readonly string[] = [];
  #isWaiting = false;
  #hasLeft = false;
  /** True until the last frame of the response, the trailers or an empty one, has been queued. */
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

  /** Ignores `close`: a stream ends by itself, and GracefulGoaway ends the connection. */
  head(status: number, headers: string[], _close: boolean, last: boolean): void {
    // gRPC's Trailers-Only form is valid only when the HEADERS frame itself ends the stream.
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
    // After a reset the stream accepts no trailers.
    if (this.#stream.closed) return;
    // Without trailers this sends an empty frame that ends the stream.
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

  /** Stops reporting the end of the stream, because a tunnel takes it over. */
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
 * Asks the client to stop sending when the response is complete before the request (RFC 9113 §8.1, RST_STREAM with
 * NO_ERROR). It runs one event-loop turn after the last frame is queued, or the reset would overtake that frame.
 */
function stopRequest(stream: ServerHttp2Stream): void {
  if (!stream.readableEnded && !stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Answers on a stream of an HTTP/2 connection (node:http2). */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Wire } from "./wire.ts";

export class Http2Wire implements Wire {
  onDrain: (() => void) | undefined;
  onFinish: (() => void) | undefined;
  readonly #stream: ServerHttp2Stream;
  #trailers: readonly string[] = [];
  #isWaiting = false;

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
  head(status: number, headers: string[]): void {
    this.#stream.respond([":status", String(status), ...headers], { waitForTrailers: true, endStream: false });
  }

  end(body?: Buffer): void {
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

  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #sendTrailers(): void {
    if (this.#stream.destroyed) return;
    // None at all is an empty last frame.
    const fields: Record<string, string | string[]> = {};
    for (let at = 0; at < this.#trailers.length; at += 2) {
      const name = this.#trailers[at] as string;
      const value = this.#trailers[at + 1] as string;
      const before = fields[name];
      fields[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
    }
    this.#stream.sendTrailers(fields);
  }

  #drained(): void {
    this.#isWaiting = false;
    this.onDrain?.();
  }

  #finished(): void {
    // An answer may be over before the request is: the client is told to stop sending (RFC 9113 8.1).
    if (!this.#stream.readableEnded && !this.#stream.destroyed) this.#stream.close(constants.NGHTTP2_NO_ERROR);
    this.onFinish?.();
  }
}

/**
 * Writes responses to an HTTP/1 connection through node:http; the HTTP/1 server makes one per request. Small bodies and
 * chunks are passed as latin1 text, which node joins with the head or the chunk framing into one write; latin1 maps
 * each byte to one character and back, so no byte changes.
 */
import type { ServerResponse } from "node:http";
import { giveBlock } from "../../../lib/blocks.ts";
import type { ResponseEncoder } from "../response-encoder.ts";

/** Up to this size, copying the body into the write of the head is cheaper than a second write. */
const JOINED_BYTES = 16_384;
const SMALL_CHUNK_BYTES = 8_192;

export class Http1ResponseEncoder implements ResponseEncoder {
  onDrain: (() => void) | undefined;
  onFinish: (() => void) | undefined;
  readonly givesBlocks = true;
  readonly #response: ServerResponse;
  #isWaiting = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("finish", this.#finished.bind(this));
  }

  get headSent(): boolean {
    return this.#response.headersSent;
  }

  get ended(): boolean {
    return this.#response.writableEnded;
  }

  get gone(): boolean {
    return this.#response.destroyed;
  }

  head(status: number, headers: string[], close: boolean): void {
    if (close) headers.push("connection", "close");
    this.#response.writeHead(status, headers);
  }

  end(body?: Buffer): void {
    if (body === undefined) this.#response.end();
    else if (body.length <= JOINED_BYTES) this.#response.end(body.toString("latin1"), "latin1");
    else this.#response.end(body);
  }

  flush(): void {
    this.#response.flushHeaders();
  }

  write(chunk: Buffer): boolean {
    const response = this.#response;
    const more = chunk.length < SMALL_CHUNK_BYTES ? this.#writeText(chunk.toString("latin1")) : this.#writeBytes(chunk);
    if (!more && !this.#isWaiting) {
      this.#isWaiting = true;
      response.once("drain", this.#drained.bind(this));
    }
    return more;
  }

  #writeText(text: string): boolean {
    const response = this.#response;
    if (!response.chunkedEncoding) return response.write(text, "latin1");
    // node splits a chunk into four writes, text and bytes in turn, and joins them again: frame the chunk here instead.
    response.chunkedEncoding = false;
    const more = response.write(`${text.length.toString(16)}\r\n${text}\r\n`, "latin1");
    response.chunkedEncoding = true;
    return more;
  }

  #writeBytes(chunk: Buffer): boolean {
    return this.#response.write(chunk, sent.bind(undefined, chunk));
  }

  /** node omits trailers of a response with Content-Length, which has no place for them. */
  trailers(raw: readonly string[]): void {
    const pairs: [string, string][] = [];
    for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at] as string, raw[at + 1] as string]);
    this.#response.addTrailers(pairs);
  }

  /**
   * Closes the connection before the last chunk, or short of the declared length (RFC 9112 §8). HTTP/1.0 may delimit a
   * body by the close alone, so there the socket is reset.
   */
  cut(): void {
    const { socket, req } = this.#response;
    if (socket !== null && req.httpVersion === "1.0") return void socket.resetAndDestroy();
    // node holds the writes of one turn back: what was written before the cut, such as an error event, still goes out.
    socket?.uncork();
    this.#response.destroy();
  }

  #drained(): void {
    this.#isWaiting = false;
    this.onDrain?.();
  }

  #finished(): void {
    this.onFinish?.();
  }
}

/** Returns the chunk to the block pool, except after an error: a failed write may still be reading its memory. */
function sent(chunk: Buffer, error?: Error | null): void {
  if (error === undefined || error === null) giveBlock(chunk);
}

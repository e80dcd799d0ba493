/** Answers on an HTTP/1 connection (node:http). */
import type { ServerResponse } from "node:http";
import { giveBlock } from "../../../lib/blocks.ts";
import type { ResponseEncoder } from "../response-encoder.ts";

/** Up to here a copy into the head's own write is cheaper than a second write. */
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
    // node makes four pieces of a chunk, text and bytes in turn, and joins them again at each write.
    response.chunkedEncoding = false;
    const more = response.write(`${text.length.toString(16)}\r\n${text}\r\n`, "latin1");
    response.chunkedEncoding = true;
    return more;
  }

  #writeBytes(chunk: Buffer): boolean {
    return this.#response.write(chunk, sent.bind(undefined, chunk));
  }

  /** An answer that declares its length has no place for them; node leaves them out. */
  trailers(raw: readonly string[]): void {
    const pairs: [string, string][] = [];
    for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at] as string, raw[at + 1] as string]);
    this.#response.addTrailers(pairs);
  }

  /** Without its last chunk, or short of its length; HTTP/1.0 has neither and gets a reset. */
  cut(): void {
    const { socket, req } = this.#response;
    if (socket !== null && req.httpVersion === "1.0") socket.resetAndDestroy();
    else this.#response.destroy();
  }

  #drained(): void {
    this.#isWaiting = false;
    this.onDrain?.();
  }

  #finished(): void {
    this.onFinish?.();
  }
}

/** What broke off may still be on its way. */
function sent(chunk: Buffer, error?: Error | null): void {
  if (error === undefined || error === null) giveBlock(chunk);
}

/**
 * Discards a response before another attempt. A short response is read to its end in the background, so that its
 * connection returns to the pool; a longer or slower one costs its connection.
 */
import type { BodySink, BodyStream } from "./body.ts";
import type { Reply } from "./exchange.ts";

const MAX_BYTES = 65_536;
const MAX_MS = 50;

export function discard({ body, tunnel }: Pick<Reply, "body"> & Partial<Reply>): void {
  tunnel?.stream.destroy();
  if (body === null || Buffer.isBuffer(body)) return;
  if (body.whole?.() === undefined) new Drain(body).start();
  else body.destroy();
}

class Drain implements BodySink {
  readonly #body: BodyStream;
  readonly #timer: NodeJS.Timeout;
  #left = MAX_BYTES;

  constructor(body: BodyStream) {
    this.#body = body;
    this.#timer = setTimeout(giveUp, MAX_MS, body);
  }

  start(): void {
    this.#body.read(this);
  }

  data(chunk: Buffer): boolean {
    this.#left -= chunk.length;
    if (this.#left >= 0) return true;
    clearTimeout(this.#timer);
    this.#body.destroy();
    return false;
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  error(): void {
    clearTimeout(this.#timer);
  }
}

function giveUp(body: BodyStream): void {
  body.destroy();
}

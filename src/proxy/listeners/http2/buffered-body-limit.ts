/**
 * Limits the number of buffered body chunks per HTTP/2 connection; each connection of the HTTP/2 server has one. Flow
 * control windows bound the bytes of unread bodies but not the number of chunks: a DATA frame with one byte costs
 * hundreds of times its payload in memory. node emits no event while a stream waits, so a timer counts the chunks.
 */
import type { Readable } from "node:stream";

const INTERVAL_MS = 250;
/** All bodies of a connection together, about 30 MB. Ordinary clients stay far below while their windows are open. */
const MAX_PIECES = 100_000;

export class BufferedBodyLimit {
  readonly #streams = new Set<Readable>();
  readonly #onExcess: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onExcess: () => void) {
    this.#onExcess = onExcess;
  }

  /** Counts the stream's chunks until it is closed or read to its end. */
  watch(stream: Readable): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(this.#look.bind(this), INTERVAL_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#streams.clear();
  }

  #look(): void {
    let pieces = 0;
    for (const stream of this.#streams)
      if (stream.destroyed || stream.readableEnded) this.#streams.delete(stream);
      else pieces += piecesOf(stream);
    if (pieces > MAX_PIECES) this.#onExcess();
    else if (this.#streams.size === 0) this.stop();
  }
}

/** node exposes the buffered bytes but not the chunks, hence the private field; a test fails if it disappears. */
function piecesOf(stream: Readable): number {
  const { _readableState: state } = stream as unknown as { _readableState?: { buffer?: { length: number } } };
  return state?.buffer?.length ?? 0;
}

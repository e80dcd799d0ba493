/**
 * What a connection of HTTP/2 holds of bodies that nobody reads at the moment. Windows bound its bytes, but not the number of
 * pieces that they come in: frames of one byte each cost hundreds of times what they hold. Looked at now and then, because
 * the runtime says nothing while a stream waits.
 */
import type { Readable } from "node:stream";

const INTERVAL_MS = 250;
/** Of all bodies together; some 30 MB. An honest client does not come near it while its windows are open. */
const MAX_PIECES = 100_000;

export class BufferedBodyLimit {
  readonly #streams = new Set<Readable>();
  readonly #onExcess: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onExcess: () => void) {
    this.#onExcess = onExcess;
  }

  /** @param stream of a body, until it is closed or read to its end */
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

/** The runtime counts bytes in public and pieces only for itself; a test notices if it stops. */
function piecesOf(stream: Readable): number {
  const { _readableState: state } = stream as unknown as { _readableState?: { buffer?: { length: number } } };
  return state?.buffer?.length ?? 0;
}

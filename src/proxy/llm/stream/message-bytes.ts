/**
 * The payload of a WebSocket message that comes in pieces. It grows in one block of memory: a message may be cut into
 * fragments of one byte, and a buffer for each of them would take a hundred times the memory of the message.
 */
export class MessageBytes {
  #block: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Adds a copy of a piece, because the owner of a chunk may use its memory again. @returns the copy, in place */
  add(piece: Buffer): Buffer {
    const start = this.#length;
    this.#length += piece.length;
    if (this.#length > this.#block.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#length, this.#block.length * 2));
      this.#block.copy(larger, 0, 0, start);
      this.#block = larger;
    }
    piece.copy(this.#block, start);
    return this.#block.subarray(start, this.#length);
  }

  /** Returns the whole payload, to which nothing may be added any more. */
  get bytes(): Buffer {
    return this.#block.subarray(0, this.#length);
  }
}

const EMPTY: Buffer = Buffer.alloc(0);

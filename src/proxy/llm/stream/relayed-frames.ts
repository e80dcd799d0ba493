/**
 * Relays the bytes of one side of a WebSocket as they came, and puts messages of the gateway between those of the side.
 * guards/session.ts uses it for a direction that no guard looks at.
 */
import { FINAL, FIRST_CONTROL, HeadReader, lengthIn } from "./frame-head.ts";

export class RelayedFrames {
  readonly #write: (bytes: Buffer) => void;
  readonly #heads: HeadReader = new HeadReader();
  /** Bytes of the payload that are still to come. */
  #left = 0;
  /** Whether further fragments of a message have to come. */
  #isFragmented = false;
  #hasEnded = false;
  /** Messages that wait for the end of the one at hand. */
  readonly #waiting: { readonly message: Buffer; readonly written: () => void }[] = [];

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write;
  }

  push(chunk: Buffer): void {
    let written = 0;
    let at = 0;
    while (at < chunk.length) {
      at = this.#left > 0 ? this.#skip(chunk, at) : this.#readHead(chunk, at);
      if (this.#waiting.length === 0 || !this.#isBetween) continue;
      this.#write(chunk.subarray(written, at));
      written = at;
      this.#writeWaiting();
    }
    if (written < chunk.length) this.#write(chunk.subarray(written));
  }

  /** Writes a whole message as soon as it cannot fall into another one. */
  async insert(message: Buffer): Promise<void> {
    if (this.#isBetween) this.#write(message);
    else if (!this.#hasEnded) await new Promise<void>((written) => this.#waiting.push({ message, written }));
  }

  /** Lets go of what waits for the end of a message that will not come, now and later. */
  end(): void {
    this.#hasEnded = true;
    for (const { written } of this.#waiting.splice(0)) written();
  }

  #writeWaiting(): void {
    for (const { message, written } of this.#waiting.splice(0)) {
      this.#write(message);
      written();
    }
  }

  get #isBetween(): boolean {
    return this.#left === 0 && !this.#isFragmented && !this.#heads.isInside;
  }

  #skip(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    return end;
  }

  #readHead(chunk: Buffer, at: number): number {
    const { head, end } = this.#heads.read(chunk, at);
    if (head === undefined) return end;
    const [first = 0] = head;
    this.#left = lengthIn(head);
    if ((first & 0x0f) < FIRST_CONTROL) this.#isFragmented = (first & FINAL) === 0;
    return end;
  }
}

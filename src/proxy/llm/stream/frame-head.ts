/** Heads of WebSocket frames (RFC 6455 §5.2), for the readers of whole messages and of their borders. */
export const CONTINUATION = 0;
export const FIRST_CONTROL = 8;
export const FINAL = 0x80;
export const MASKED = 0x80;
export const MASK_BYTES = 4;
/** Length of the longest head. */
const MAX_HEAD = 14;

/** Collects heads, which may come in pieces. */
export class HeadReader {
  #partial: Buffer = EMPTY;

  /** Whether a part of a head has come. */
  get isInside(): boolean {
    return this.#partial.length > 0;
  }

  /** @returns the head once it is complete, and the place in the chunk that follows it */
  read(chunk: Buffer, from: number): { readonly head: Buffer | undefined; readonly end: number } {
    const known = this.#partial.length;
    const bytes = Buffer.concat([this.#partial, chunk.subarray(from, from + MAX_HEAD - known)]);
    const size = sizeOfHead(bytes);
    if (size === undefined || bytes.length < size) {
      this.#partial = bytes;
      return { head: undefined, end: chunk.length };
    }
    this.#partial = EMPTY;
    return { head: bytes.subarray(0, size), end: from + size - known };
  }
}

const EMPTY: Buffer = Buffer.alloc(0);

/** @returns undefined when the second byte has not come yet */
function sizeOfHead(bytes: Buffer): number | undefined {
  const second = bytes[1];
  if (second === undefined) return undefined;
  const short = second & 0x7f;
  return 2 + (short === 127 ? 8 : short === 126 ? 2 : 0) + ((second & MASKED) === 0 ? 0 : MASK_BYTES);
}

/** Returns the length of the payload. */
export function lengthIn(head: Buffer): number {
  const short = (head[1] ?? 0) & 0x7f;
  if (short === 126) return head.readUInt16BE(2);
  return short === 127 ? Number(head.readBigUInt64BE(2)) : short;
}

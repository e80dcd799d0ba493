/**
 * A pool of memory blocks for large pieces of bodies, used by the HTTP/1 client and the HTTP/1 response encoder.
 * Buffers of this size are allocated outside of the JavaScript heap, and tens of megabytes of new ones make V8 run full
 * collections, ten times a second, only to free buffers.
 *
 * The taker of a block may pass it only to the code that gives it back: after giveBlock other requests write to the
 * same memory. A block that is never given back is collected like any other buffer.
 */

/** The size that Node reads at once. */
export const BLOCK_BYTES = 65_536;
/** Limit on free blocks per thread. More blocks are in flight only while many clients read slowly. */
const MAX_FREE = 64;

const free: ArrayBuffer[] = [];
const taken = new WeakSet<ArrayBufferLike>();

/**
 * @param bytes at most BLOCK_BYTES
 * @returns a buffer with arbitrary content
 */
export function takeBlock(bytes: number): Buffer {
  const memory = free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES).buffer;
  taken.add(memory);
  return Buffer.from(memory, 0, bytes);
}

/**
 * Gives a block back; others may write to it from here on. A buffer that is not a block, or was given back, is ignored.
 */
export function giveBlock({ buffer }: Buffer): void {
  if (taken.delete(buffer) && free.length < MAX_FREE && buffer instanceof ArrayBuffer) free.push(buffer);
}

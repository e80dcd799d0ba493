/**
 * Memory for large pieces of bodies that is used again. A piece made anew for each read is outside of the heap, and tens of
 * megabytes of those make the engine collect everything, ten times a second, for nothing but buffers. Whoever takes a
 * block passes it to nobody but the one who gives it back; a block that never comes back is collected like any other.
 */

/** What node reads at once. */
export const BLOCK_BYTES = 65_536;
/** Of each thread: more are in flight only while many clients read slowly. */
const MAX_FREE = 64;

const free: ArrayBuffer[] = [];
const taken = new WeakSet<ArrayBufferLike>();

/** @param bytes at most BLOCK_BYTES @returns what holds anything */
export function takeBlock(bytes: number): Buffer {
  const memory = free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES).buffer;
  taken.add(memory);
  return Buffer.from(memory, 0, bytes);
}

/** From here on others write to it. What is no block, or was given back, is left alone. */
export function giveBlock({ buffer }: Buffer): void {
  if (taken.delete(buffer) && free.length < MAX_FREE && buffer instanceof ArrayBuffer) free.push(buffer);
}

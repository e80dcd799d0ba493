/**
 * Frees the memory of a large buffer at once. Such memory is outside of the JavaScript heap, and 64 MiB of it that wait
 * for the collector make V8 run a full collection, which takes longer than some hundred requests.
 */

/** A smaller buffer weighs less than the call takes. */
const MIN_BYTES = 4_096;

/**
 * Leaves an empty buffer behind. Only the code that alone refers to the bytes may call it: whoever reads them later gets
 * none, and a write to a socket that has not ended would read memory that has another owner. A view of a larger piece of
 * memory stays as it is.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (length >= MIN_BYTES && buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/**
 * Arithmetic on CRC-32 checksums (ISO/IEC 3309, as zlib computes them), without the bytes that they belong to. The
 * parser of Bedrock's event streams uses it to verify all frames of a chunk with one call of zlib, where one call for
 * each frame would cost more than reading it.
 *
 * A checksum is a polynomial over GF(2) modulo the generator, so appending n bytes multiplies it by x^8n. As in zlib, the
 * most significant bit is the coefficient of x^0.
 */

/** The generator without its highest term. */
const GENERATOR = 0xedb88320;
const ONE = 0x80000000;
const X_TO_8 = 0x00800000;
/** Powers for shorter parts are kept; 0, which no power is, stands for one that is not known yet. */
const SHORT = 4_096;

const TABLE: Int32Array = makeTable();
const POWERS: Int32Array = new Int32Array(SHORT);

/** Returns the checksum of two parts in a row. @param bytes length of the second part */
export function joinChecksums(first: number, second: number, bytes: number): number {
  return (multiply(first, powerOf(bytes)) ^ second) >>> 0;
}

/** Returns the checksum of a part that is followed by its own checksum in big-endian order. */
export function withChecksum(checksum: number): number {
  let rest = ~checksum;
  for (let shift = 24; shift >= 0; shift -= 8)
    rest = (rest >>> 8) ^ (TABLE[(rest ^ (checksum >>> shift)) & 0xff] as number); // an index of one byte
  return ~rest >>> 0;
}

/** Returns x^8n for n bytes. */
function powerOf(bytes: number): number {
  if (bytes >= SHORT) return computePower(bytes);
  const known = POWERS[bytes] as number; // below the length of the table
  return known === 0 ? (POWERS[bytes] = computePower(bytes)) : known;
}

function computePower(bytes: number): number {
  let power = ONE;
  let square = X_TO_8;
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

/** Multiplies modulo the generator. It has no branches, because the processor could not predict them. */
function multiply(a: number, b: number): number {
  let product = 0;
  let left = a;
  let right = b;
  for (let bit = 0; bit < 32; bit++) {
    product ^= right & (left >> 31);
    left <<= 1;
    right = (right >>> 1) ^ (GENERATOR & -(right & 1));
  }
  return product;
}

/** Checksums of single bytes, without the inversions at the start and at the end. */
function makeTable(): Int32Array {
  return Int32Array.from({ length: 256 }, (_, byte) => {
    let rest = byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (GENERATOR & -(rest & 1));
    return rest;
  });
}

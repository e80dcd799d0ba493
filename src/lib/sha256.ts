/**
 * SHA-256 (FIPS 180-4), synchronous and without platform modules, for rooms that must stay pure: stored key hashes and
 * resource versions. Not for streams: the whole message is in memory.
 */
const ROUND_CONSTANTS = constants(64, 1 / 3);
const INITIAL_STATE = constants(8, 1 / 2);

/** @param data bytes, or text taken as UTF-8. @returns 32 bytes */
export function sha256(data: Uint8Array | string): Uint8Array {
  const blocks = padded(typeof data === "string" ? new TextEncoder().encode(data) : data);
  const state = INITIAL_STATE.slice();
  const words = new Uint32Array(64);
  for (let at = 0; at < blocks.byteLength; at += 64) compress(state, words, new DataView(blocks.buffer, at, 64));
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, at) => digest.setUint32(at * 4, word));
  return new Uint8Array(digest.buffer);
}

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** @returns undefined when the text is not pairs of hexadecimal digits */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  return Uint8Array.from({ length: text.length / 2 }, (_, at) => Number.parseInt(text.slice(at * 2, at * 2 + 2), 16));
}

/** The message, a 1 bit, zeros, and its length in bits as 64-bit big endian. */
function padded(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  blocks.set(message);
  blocks[message.length] = 0x80;
  new DataView(blocks.buffer).setBigUint64(blocks.length - 8, BigInt(message.length) * 8n);
  return blocks;
}

function compress(state: Uint32Array, words: Uint32Array, block: DataView): void {
  for (let at = 0; at < 16; at++) words[at] = block.getUint32(at * 4);
  for (let at = 16; at < 64; at++) {
    const near = word(words, at - 2);
    const far = word(words, at - 15);
    const sigma1 = rotate(near, 17) ^ rotate(near, 19) ^ (near >>> 10);
    const sigma0 = rotate(far, 7) ^ rotate(far, 18) ^ (far >>> 3);
    words[at] = sigma1 + word(words, at - 7) + sigma0 + word(words, at - 16);
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as Eight; // an eight-word array by construction
  for (let at = 0; at < 64; at++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const first = (h + sum1 + choice + word(ROUND_CONSTANTS, at) + word(words, at)) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + sum0 + majority) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((value, at) => (state[at] = word(state, at) + value));
}

type Eight = [number, number, number, number, number, number, number, number];

function rotate(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by));
}

function word(words: Uint32Array, at: number): number {
  return words[at] as number; // every caller stays inside the array
}

/** The first 32 bits of the fractional parts of roots of the first primes, as the standard defines its constants. */
function constants(count: number, power: number): Uint32Array {
  const found = new Uint32Array(count);
  let at = 0;
  for (let candidate = 2; at < count; candidate++) {
    if (!isPrime(candidate)) continue;
    const root = candidate ** power;
    found[at++] = (root - Math.floor(root)) * 2 ** 32;
  }
  return found;
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false;
  return true;
}

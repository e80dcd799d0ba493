/**
 * XXH3 with 64 bits and a seed (xxHash specification, XXH3 version 0.2.0), for session affinity. The hash is fast and
 * stable across versions and machines. It is not cryptographic: a client can find collisions.
 */
import { add, high, low, multiply, multiplyFold, set, subtract, xorShift, type Uint64 } from "./uint64.ts";

const SECRET = Buffer.from(
  "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221" +
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8" +
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb" +
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e",
  "hex",
);

const PRIME32_1 = 0x9e37_79b1;
const PRIME32_2 = 0x85eb_ca77;
const PRIME32_3 = 0xc2b2_ae3d;
const PRIME1: Uint64 = { high: 0x9e37_79b1, low: 0x85eb_ca87 };
const PRIME2: Uint64 = { high: 0xc2b2_ae3d, low: 0x27d4_eb4f };
const PRIME3: Uint64 = { high: 0x1656_67b1, low: 0x9e37_79f9 };
const PRIME4: Uint64 = { high: 0x85eb_ca77, low: 0xc2b2_ae63 };
const PRIME5: Uint64 = { high: 0x27d4_eb2f, low: 0x1656_67c5 };
const MIX1: Uint64 = { high: 0x1656_6791, low: 0x9e37_79f9 };
const MIX2: Uint64 = { high: 0x9fb2_1c65, low: 0x1e98_df25 };
/** The initial accumulator: eight lanes of 64 bits, the lower half first. */
const START: readonly number[] = [
  { high: 0, low: PRIME32_3 },
  PRIME1,
  PRIME2,
  PRIME3,
  PRIME4,
  { high: 0, low: PRIME32_2 },
  PRIME5,
  { high: 0, low: PRIME32_1 },
].flatMap((value) => [value.low, value.high]);

const STRIPE_BYTES = 64;
const STRIPES_PER_BLOCK = 16;
const BLOCK_BYTES = STRIPE_BYTES * STRIPES_PER_BLOCK;
const LANES = 8;

export function xxh3(bytes: Buffer, seed: Uint64): Uint64 {
  const { length } = bytes;
  if (length > 240) hashLong(bytes, seed);
  else if (length > 128) hashTo240(bytes, seed);
  else if (length > 16) hashTo128(bytes, seed);
  else if (length > 8) hashTo16(bytes, seed);
  else if (length >= 4) hashTo8(bytes, seed);
  else if (length > 0) hashTo3(bytes, seed);
  else {
    set(secret(60) ^ secret(68) ^ seed.high, secret(56) ^ secret(64) ^ seed.low);
    avalanche64();
  }
  return { high, low };
}

function hashTo3(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  const first = bytes[0] as number; // neither index is beyond the end
  const middle = bytes[length >> 1] as number;
  const last = bytes[length - 1] as number;
  const combined = (first << 16) | (middle << 24) | last | (length << 8);
  add(0, (secret(0) ^ secret(4)) >>> 0, seed.high, seed.low);
  set(high, low ^ combined);
  avalanche64();
}

function hashTo8(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  subtract(
    (secret(12) ^ secret(20)) >>> 0,
    (secret(8) ^ secret(16)) >>> 0,
    (seed.high ^ swapped(seed.low)) >>> 0,
    seed.low,
  );
  set(high ^ bytes.readUInt32LE(0), low ^ bytes.readUInt32LE(length - 4));
  const [h, l] = [high, low];
  // Rotate to the left by 49 and by 24.
  const rotatedHigh = ((l << 17) | (h >>> 15)) ^ ((h << 24) | (l >>> 8));
  const rotatedLow = ((h << 17) | (l >>> 15)) ^ ((l << 24) | (h >>> 8));
  multiply((h ^ rotatedHigh) >>> 0, (l ^ rotatedLow) >>> 0, MIX2.high, MIX2.low);
  set(high, low ^ ((high >>> 3) + length));
  multiply(high, low, MIX2.high, MIX2.low);
  xorShift(high, low, 28);
}

function hashTo16(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  add((secret(28) ^ secret(36)) >>> 0, (secret(24) ^ secret(32)) >>> 0, seed.high, seed.low);
  const firstHigh = (high ^ bytes.readUInt32LE(4)) >>> 0;
  const firstLow = (low ^ bytes.readUInt32LE(0)) >>> 0;
  subtract((secret(44) ^ secret(52)) >>> 0, (secret(40) ^ secret(48)) >>> 0, seed.high, seed.low);
  const lastHigh = (high ^ bytes.readUInt32LE(length - 4)) >>> 0;
  const lastLow = (low ^ bytes.readUInt32LE(length - 8)) >>> 0;
  multiplyFold(firstHigh, firstLow, lastHigh, lastLow);
  add(high, low, lastHigh, lastLow);
  add(high, low, swapped(firstLow), swapped(firstHigh));
  add(high, low, 0, length);
  avalanche3();
}

function hashTo128(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  multiply(0, length, PRIME1.high, PRIME1.low);
  // Mix from the middle outwards, 16 bytes at each end.
  for (let at = (Math.ceil(length / 32) - 1) * 16; at >= 0; at -= 16) {
    addMixed(bytes, at, at * 2, seed);
    addMixed(bytes, length - 16 - at, at * 2 + 16, seed);
  }
  avalanche3();
}

function hashTo240(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  multiply(0, length, PRIME1.high, PRIME1.low);
  for (let at = 0; at < 128; at += 16) addMixed(bytes, at, at, seed);
  avalanche3();
  for (let at = 128; at + 16 <= length; at += 16) addMixed(bytes, at, at - 128 + 3, seed);
  addMixed(bytes, length - 16, 136 - 17, seed);
  avalanche3();
}

/**
 * Hashes more than 240 bytes: 64-byte stripes are accumulated into eight lanes, the lanes are scrambled after each
 * block of 16 stripes, and the last 64 bytes are one more stripe, which may overlap the others.
 */
function hashLong(bytes: Buffer, seed: Uint64): void {
  const { length } = bytes;
  const own = seededSecret(seed);
  const lanes = Uint32Array.from(START);
  const blocks = Math.floor((length - 1) / BLOCK_BYTES);
  for (let block = 0; block < blocks; block++) {
    for (let n = 0; n < STRIPES_PER_BLOCK; n++)
      accumulate(lanes, bytes.subarray(block * BLOCK_BYTES + n * STRIPE_BYTES), own.subarray(n * 8));
    scramble(lanes, own);
  }
  const rest = Math.floor((length - 1 - blocks * BLOCK_BYTES) / STRIPE_BYTES);
  for (let n = 0; n < rest; n++)
    accumulate(lanes, bytes.subarray(blocks * BLOCK_BYTES + n * STRIPE_BYTES), own.subarray(n * 8));
  accumulate(lanes, bytes.subarray(length - STRIPE_BYTES), own.subarray(SECRET.length - STRIPE_BYTES - 7));
  merge(lanes, own, length);
}

function seededSecret(seed: Uint64): Buffer {
  const own = Buffer.from(SECRET);
  for (let at = 0; at < own.length; at += 16) {
    add(own.readUInt32LE(at + 4), own.readUInt32LE(at), seed.high, seed.low);
    own.writeUInt32LE(low, at);
    own.writeUInt32LE(high, at + 4);
    subtract(own.readUInt32LE(at + 12), own.readUInt32LE(at + 8), seed.high, seed.low);
    own.writeUInt32LE(low, at + 8);
    own.writeUInt32LE(high, at + 12);
  }
  return own;
}

function accumulate(lanes: Uint32Array, stripe: Buffer, own: Buffer): void {
  for (let lane = 0; lane < LANES; lane++) {
    const dataLow = stripe.readUInt32LE(lane * 8);
    const dataHigh = stripe.readUInt32LE(lane * 8 + 4);
    addTo(lanes, lane ^ 1, dataHigh, dataLow);
    const keyLow = (dataLow ^ own.readUInt32LE(lane * 8)) >>> 0;
    const keyHigh = (dataHigh ^ own.readUInt32LE(lane * 8 + 4)) >>> 0;
    multiply(0, keyLow, 0, keyHigh);
    addTo(lanes, lane, high, low);
  }
}

function addTo(lanes: Uint32Array, lane: number, h: number, l: number): void {
  add(lanes[lane * 2 + 1] as number, lanes[lane * 2] as number, h, l);
  lanes[lane * 2] = low;
  lanes[lane * 2 + 1] = high;
}

function scramble(lanes: Uint32Array, own: Buffer): void {
  const from = own.length - STRIPE_BYTES;
  for (let lane = 0; lane < LANES; lane++) {
    xorShift(lanes[lane * 2 + 1] as number, lanes[lane * 2] as number, 47);
    const h = (high ^ own.readUInt32LE(from + lane * 8 + 4)) >>> 0;
    const l = (low ^ own.readUInt32LE(from + lane * 8)) >>> 0;
    multiply(h, l, 0, PRIME32_1);
    lanes[lane * 2] = low;
    lanes[lane * 2 + 1] = high;
  }
}

function merge(lanes: Uint32Array, own: Buffer, length: number): void {
  multiply(0, length, PRIME1.high, PRIME1.low);
  let [sumHigh, sumLow] = [high, low];
  for (let at = 0; at < 4; at++) {
    const from = 11 + at * 16;
    multiplyFold(
      ((lanes[at * 4 + 1] as number) ^ own.readUInt32LE(from + 4)) >>> 0,
      ((lanes[at * 4] as number) ^ own.readUInt32LE(from)) >>> 0,
      ((lanes[at * 4 + 3] as number) ^ own.readUInt32LE(from + 12)) >>> 0,
      ((lanes[at * 4 + 2] as number) ^ own.readUInt32LE(from + 8)) >>> 0,
    );
    add(high, low, sumHigh, sumLow);
    [sumHigh, sumLow] = [high, low];
  }
  avalanche3();
}

/** Mixes 16 bytes and adds them to the sum in `high` and `low`. */
function addMixed(bytes: Buffer, at: number, secretAt: number, seed: Uint64): void {
  const [sumHigh, sumLow] = [high, low];
  add(secret(secretAt + 4), secret(secretAt), seed.high, seed.low);
  const firstHigh = (high ^ bytes.readUInt32LE(at + 4)) >>> 0;
  const firstLow = (low ^ bytes.readUInt32LE(at)) >>> 0;
  subtract(secret(secretAt + 12), secret(secretAt + 8), seed.high, seed.low);
  const lastHigh = (high ^ bytes.readUInt32LE(at + 12)) >>> 0;
  const lastLow = (low ^ bytes.readUInt32LE(at + 8)) >>> 0;
  multiplyFold(firstHigh, firstLow, lastHigh, lastLow);
  add(high, low, sumHigh, sumLow);
}

function avalanche3(): void {
  xorShift(high, low, 37);
  multiply(high, low, MIX1.high, MIX1.low);
  xorShift(high, low, 32);
}

/** The final mix of XXH64. */
function avalanche64(): void {
  xorShift(high, low, 33);
  multiply(high, low, PRIME2.high, PRIME2.low);
  xorShift(high, low, 29);
  multiply(high, low, PRIME3.high, PRIME3.low);
  xorShift(high, low, 32);
}

function secret(at: number): number {
  return SECRET.readUInt32LE(at);
}

function swapped(value: number): number {
  return ((value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24)) >>> 0;
}

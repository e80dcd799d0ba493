/**
 * Traditional DES crypt(3): the first eight characters of the password, seven bits each, are a DES key (FIPS 46-3) that
 * encrypts zeros 25 times, with an expansion table that the salt modifies. It is weak, but old htpasswd files contain
 * it, and Node does not offer it. Bits are stored as bytes of 0 and 1; tables hold positions, counted from zero.
 */
import { CRYPT_DIGITS } from "./base64.ts";

type Table = readonly number[];

const INITIAL: Table = [57, 59, 61, 63, 56, 58, 60, 62].flatMap((first) =>
  Array.from({ length: 8 }, (_, at) => first - 8 * at),
);
const FINAL: Table = INITIAL.map((_, place) => INITIAL.indexOf(place));
const EXPANSION: Table = Array.from({ length: 48 }, (_, at) => (4 * Math.floor(at / 6) + (at % 6) + 31) % 32);
const PERMUTATION = table("16 7 20 21 29 12 28 17 1 15 23 26 5 18 31 10 2 8 24 14 32 27 3 9 19 13 30 6 22 11 4 25");
const KEY_CHOICE = table(
  "57 49 41 33 25 17 9 1 58 50 42 34 26 18 10 2 59 51 43 35 27 19 11 3 60 52 44 36 " +
    "63 55 47 39 31 23 15 7 62 54 46 38 30 22 14 6 61 53 45 37 29 21 13 5 28 20 12 4",
);
const ROUND_CHOICE = table(
  "14 17 11 24 1 5 3 28 15 6 21 10 23 19 12 4 26 8 16 7 27 20 13 2 " +
    "41 52 31 37 47 55 30 40 51 45 33 48 44 49 39 56 34 53 46 42 50 36 29 32",
);
const TURNS: Table = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];
const PASSES = 25;

/** The S-boxes, as four rows of sixteen hexadecimal digits each. */
const BOXES: readonly Table[] = [
  "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d",
  "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9",
  "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c",
  "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e",
  "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453",
  "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d",
  "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c",
  "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b",
].map((rows) => [...rows].map((digit) => Number.parseInt(digit, 16)));

/**
 * @param salt two digits of crypt's alphabet
 * @returns the whole hash, 13 digits
 */
export function desCrypt(password: Uint8Array, salt: string): string {
  const keys = roundKeys(password);
  const expansion = disturbed(salt);
  let block = new Uint8Array(64);
  for (let pass = 0; pass < PASSES; pass++) block = encrypt(block, keys, expansion);
  let text = salt;
  for (let at = 0; at < 66; at += 6) text += CRYPT_DIGITS[number(block, at, 6)] ?? "";
  return text;
}

function table(places: string): Table {
  return places.split(" ").map((place) => Number(place) - 1);
}

function choose(bits: Uint8Array, places: Table): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(places, (place) => bits[place] ?? 0);
}

/** Reads bits as a number, the first one as the highest; bits beyond the end are zero. */
function number(bits: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let offset = 0; offset < count; offset++) value = value * 2 + (bits[at + offset] ?? 0);
  return value;
}

/** Derives the sixteen round keys of 48 bits. */
function roundKeys(password: Uint8Array): Uint8Array[] {
  const key = new Uint8Array(64);
  for (let at = 0; at < 64; at++)
    key[at] = at % 8 === 7 ? 0 : ((password[Math.floor(at / 8)] ?? 0) >> (6 - (at % 8))) & 1;
  let halves = choose(key, KEY_CHOICE);
  return TURNS.map((by) => {
    halves = Uint8Array.from(halves, (_, at) => halves[(at < 28 ? 0 : 28) + (((at % 28) + by) % 28)] ?? 0);
    return choose(halves, ROUND_CHOICE);
  });
}

/** Applies the salt: each of its bits swaps two positions of the expansion table. */
function disturbed(salt: string): Table {
  const places = [...EXPANSION];
  for (let at = 0; at < 12; at++) {
    const digit = CRYPT_DIGITS.indexOf(salt[Math.floor(at / 6)] ?? ".");
    if (((digit >> (at % 6)) & 1) === 0) continue;
    const [near = 0, far = 0] = [EXPANSION[at], EXPANSION[at + 24]];
    places[at] = far;
    places[at + 24] = near;
  }
  return places;
}

/** Encrypts one block: the initial permutation, sixteen Feistel rounds, and the final permutation. */
function encrypt(block: Uint8Array, keys: readonly Uint8Array[], expansion: Table): Uint8Array<ArrayBuffer> {
  const start = choose(block, INITIAL);
  let left = start.slice(0, 32);
  let right = start.slice(32);
  for (const key of keys) {
    const mixed = substitute(choose(right, expansion), key);
    [left, right] = [right, left.map((bit, at) => bit ^ (mixed[at] ?? 0))];
  }
  const joined = new Uint8Array(64);
  joined.set(right);
  joined.set(left, 32);
  return choose(joined, FINAL);
}

function substitute(expanded: Uint8Array, key: Uint8Array): Uint8Array {
  const bits = expanded.map((bit, at) => bit ^ (key[at] ?? 0));
  const out = new Uint8Array(32);
  BOXES.forEach((box, at) => {
    const six = number(bits, 6 * at, 6);
    // The two outer bits select the row, the four inner bits the column.
    const four = box[((six >> 4) & 2) * 16 + (six & 1) * 16 + ((six >> 1) & 15)] ?? 0;
    for (let bit = 0; bit < 4; bit++) out[4 * at + bit] = (four >> (3 - bit)) & 1;
  });
  return choose(out, PERMUTATION);
}

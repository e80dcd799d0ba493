/**
 * SHA-crypt, the `$5$` and `$6$` formats of crypt(3), as glibc implements it (U. Drepper, "Unix crypt using SHA-256 and
 * SHA-512", 2007).
 */
import { hash } from "node:crypto";
import { encodeGroups } from "./base64.ts";

interface Variant {
  readonly id: "5" | "6";
  readonly digest: "sha256" | "sha512";
  readonly size: number;
  readonly groups: readonly (readonly number[])[];
}

const SHA256: Variant = { id: "5", digest: "sha256", size: 32, groups: [...rotated(10, 30), [31, 30]] };
const SHA512: Variant = { id: "6", digest: "sha512", size: 64, groups: [...rotated(21, 63), [63]] };

/**
 * Returns the byte order of the specification: three thirds of the digest side by side, each next group rotated by one.
 * The direction of the rotation differs between the two digests.
 */
function rotated(third: number, total: number): number[][] {
  const groups: number[][] = [];
  let group = [0, third, 2 * third];
  for (let count = 0; count < total / 3; count++) {
    groups.push(group);
    const [a = 0, b = 0, c = 0] = group.map((index) => index + 1);
    group = third === 10 ? [c, a, b] : [b, c, a];
  }
  return groups;
}

/**
 * @param options salt and rounds, from a hash of the same format
 * @returns the whole hash
 */
export function shaCrypt(password: Buffer, form: "sha256-crypt" | "sha512-crypt", options: ShaOptions): string {
  const variant = form === "sha256-crypt" ? SHA256 : SHA512;
  const { rounds, salt } = options;
  const saltBytes = Buffer.from(salt);
  const sum = (...parts: readonly Uint8Array[]): Buffer => hash(variant.digest, Buffer.concat(parts), "buffer");
  let digest = firstDigest(password, saltBytes, sum);
  const p = filled(sum(...repeated(password, password.length)), password.length);
  const s = filled(sum(...repeated(saltBytes, 16 + (digest[0] as number))), saltBytes.length);
  for (let round = 0; round < rounds; round++) {
    const odd = (round & 1) === 1;
    const parts = [odd ? p : digest];
    if (round % 3 !== 0) parts.push(s);
    if (round % 7 !== 0) parts.push(p);
    parts.push(odd ? digest : p);
    digest = sum(...parts);
  }
  const prefix = options.explicit ? `rounds=${rounds}$` : "";
  return `$${variant.id}$${prefix}${salt}$${encodeGroups(digest, variant.groups)}`;
}

export interface ShaOptions {
  /** The salt has at most 16 bytes. */
  readonly salt: string;
  readonly rounds: number;
  /** True when the hash states its rounds. */
  readonly explicit: boolean;
}

function firstDigest(password: Buffer, salt: Buffer, sum: (...parts: readonly Uint8Array[]) => Buffer): Buffer {
  const inner = sum(password, salt, password);
  const parts: Buffer[] = [password, salt, filled(inner, password.length)];
  for (let bits = password.length; bits > 0; bits >>>= 1) parts.push((bits & 1) === 1 ? inner : password);
  return sum(...parts);
}

/** Repeats the bytes up to a length. */
function filled(bytes: Buffer, length: number): Buffer {
  return length === 0 ? Buffer.alloc(0) : Buffer.alloc(length, bytes);
}

function repeated(bytes: Buffer, times: number): Buffer[] {
  return Array.from({ length: times }, () => bytes);
}

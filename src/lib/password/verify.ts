/** Verifies a password against a hash. It is slow on purpose, so only the threads of worker.ts call it. */
import { hash as digestOf, timingSafeEqual } from "node:crypto";
import { compareSync } from "bcryptjs";
import { apr1 } from "./apr1.ts";
import { desCrypt } from "./des-crypt.ts";
import { findHashError, formOf, shaRounds } from "./form.ts";
import { shaCrypt } from "./sha-crypt.ts";

/** @param hash in one of the formats of form.ts; any other text never matches */
export function verifyPassword(password: Buffer, hash: string): boolean {
  // The C library ends a password at a NUL, so "secret" and "secret\0x" would match the same hash.
  if (findHashError(hash) !== undefined || password.includes(0)) return false;
  const form = formOf(hash);
  switch (form) {
    case "sha1":
      return same(`{SHA}${digestOf("sha1", password, "base64")}`, hash);
    case "apr1":
      return same(apr1(password, partOf(hash, 2)), hash);
    case "bcrypt":
      return compareSync(password.toString(), hash);
    case "sha256-crypt":
    case "sha512-crypt": {
      const explicit = partOf(hash, 2).startsWith("rounds=");
      const rounds = shaRounds(hash);
      const salt = partOf(hash, explicit ? 3 : 2);
      const computed = shaCrypt(password, form, { salt, rounds, explicit });
      // A hash may state fewer rounds than the minimum; the computed text then differs, so compare only the digests.
      return same(lastPart(computed), lastPart(hash));
    }
    case "des-crypt":
      return same(desCrypt(password, hash.slice(0, 2)), hash);
    case undefined:
      return false;
  }
}

function partOf(hash: string, at: number): string {
  return hash.split("$")[at] ?? "";
}

function lastPart(hash: string): string {
  return hash.slice(hash.lastIndexOf("$") + 1);
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

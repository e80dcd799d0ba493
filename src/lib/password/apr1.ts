/** Apache's variant of MD5-crypt (`$apr1$` in htpasswd files): a thousand rounds of MD5 over password and salt. */
import { hash } from "node:crypto";
import { encodeGroups } from "./base64.ts";

const ROUNDS = 1000;
const GROUPS = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5], [11]];

/**
 * @param salt one to eight characters
 * @returns the whole hash
 */
export function apr1(password: Buffer, salt: string): string {
  const saltBytes = Buffer.from(salt);
  const inner = md5(password, saltBytes, password);
  const start: Buffer[] = [password, Buffer.from("$apr1$"), saltBytes];
  for (let left = password.length; left > 0; left -= 16) start.push(inner.subarray(0, Math.min(16, left)));
  for (let bits = password.length; bits > 0; bits >>>= 1)
    start.push((bits & 1) === 1 ? Buffer.of(0) : password.subarray(0, 1));
  let digest = md5(...start);
  for (let round = 0; round < ROUNDS; round++) {
    const odd = (round & 1) === 1;
    const parts = [odd ? password : digest];
    if (round % 3 !== 0) parts.push(saltBytes);
    if (round % 7 !== 0) parts.push(password);
    parts.push(odd ? digest : password);
    digest = md5(...parts);
  }
  return `$apr1$${salt}$${encodeGroups(digest, GROUPS)}`;
}

function md5(...parts: readonly Buffer[]): Buffer {
  return hash("md5", Buffer.concat(parts), "buffer");
}

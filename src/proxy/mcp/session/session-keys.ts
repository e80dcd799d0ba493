/** Reads the keys that seal session ids and cursors, and makes one where none is configured. */
import { randomBytes } from "node:crypto";
import { ConfigError } from "../../../lib/errors.ts";
import { Seal } from "./seal.ts";

const KEY_BYTES = 32;
const KEY = /^[0-9a-f]{64}$/i;

/** Checks a comma list of keys of 64 hexadecimal digits. @throws ConfigError, which does not show the text */
export function parseSessionKeys(text: string): string[] {
  const keys = text.split(",").map((key) => key.trim());
  for (const [at, key] of keys.entries())
    if (!KEY.test(key)) throw new ConfigError(`key ${at + 1} of ${keys.length} is not 64 hexadecimal digits`);
  return keys;
}

/** Makes a key for a process that was given none: sessions then end with the process. */
export function randomSessionKey(): string {
  return randomBytes(KEY_BYTES).toString("hex");
}

/** @param keys as `parseSessionKeys` returns them; the first one seals and all of them open */
export function sealOf([first = randomSessionKey(), ...others]: readonly string[]): Seal {
  return new Seal([Buffer.from(first, "hex"), ...others.map((key) => Buffer.from(key, "hex"))]);
}

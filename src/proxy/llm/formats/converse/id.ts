/** Identifiers of answers, for which Converse has none. */
import { randomBytes } from "node:crypto";

/** Returns the time in hexadecimal milliseconds and 8 random digits, so that identifiers sort by time. */
export function makeId(): string {
  return `msg_${Date.now().toString(16)}${randomBytes(4).toString("hex")}`;
}

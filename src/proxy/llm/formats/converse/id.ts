/** Identifiers of answers, for which Converse has none. */
import { randomUUID } from "node:crypto";

/**
 * Returns the time in hexadecimal milliseconds and 8 random digits, so that identifiers sort by time. Node draws the
 * random bytes of many UUIDs at once; a call of `randomBytes` took a tenth of a translated JSON chat.
 */
export function makeId(): string {
  return `msg_${Date.now().toString(16)}${randomUUID().slice(0, 8)}`;
}

/**
 * Ids of requests that the gateway sends to targets of its own accord: to enter a session, and to learn what exists.
 * Servers tell the requests of a session apart by their ids, and several calls, threads and replicas may ask in one
 * session at once. So numbers begin anywhere, and none is used twice.
 */
import { randomInt } from "node:crypto";

let lastNumber = randomInt(2 ** 47);

/** Returns the JSON text of an id that no other request has. */
export function nextOwnId(purpose: "enter" | "resolve"): string {
  lastNumber++;
  return `"gw-${purpose}-${lastNumber}"`;
}

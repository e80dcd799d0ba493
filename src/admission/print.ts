/** Prints values as the API server, a Go program, prints them in its messages. messages.ts and the checks use it. */
import { quote } from "../lib/quote.ts";

const LONGEST = 256;
const INT64 = 2 ** 63;

/** Prints a value and shortens it before it would fill the screen. */
export function print(value: unknown): string {
  const text = printWhole(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Whether the API server reads the number as an integer. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < INT64;
}

/** Prints with an exponent of two digits from a million on and below a ten thousandth, as Go does. */
export function printFloat(value: number): string {
  const [digits, exponent = "0"] = value.toExponential().split("e");
  const power = Number(exponent);
  if (value === 0 || (power >= -4 && power < LARGEST_PLAIN)) return String(value);
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

const LARGEST_PLAIN = 6;

function printWhole(value: unknown): string {
  // Cut before quoting, because a value may be megabytes long.
  if (typeof value === "string") return quote(value.length > LONGEST ? value.slice(0, LONGEST + 1) : value);
  if (typeof value === "number") return isInt64(value) ? String(value) : printFloat(value);
  return json(value);
}

/**
 * Prints JSON as Go does: members sorted by name, and characters that could end a script in HTML escaped. Stops soon
 * after the limit of what is shown.
 */
function json(value: unknown): string {
  const parts: string[] = [];
  const room = { left: LONGEST };
  writeJson(value, (part) => {
    parts.push(part);
    room.left -= part.length;
    return room.left >= 0;
  });
  return parts
    .join("")
    .replace(/[<>&\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * @param write returns false when the limit is reached
 * @returns false when `write` did
 */
function writeJson(value: unknown, write: (part: string) => boolean): boolean {
  if (typeof value !== "object" || value === null) {
    const shown = typeof value === "string" && value.length > LONGEST ? value.slice(0, LONGEST + 1) : value;
    return write(JSON.stringify(shown) ?? "null");
  }
  const isList = Array.isArray(value);
  if (!write(isList ? "[" : "{")) return false;
  const keys = isList ? value.keys() : Object.keys(value).sort();
  let separator = "";
  for (const key of keys) {
    if (!write(isList ? separator : `${separator}${JSON.stringify(key)}:`)) return false;
    // Arrays and plain objects can both be indexed by their own keys.
    if (!writeJson((value as Record<string | number, unknown>)[key], write)) return false;
    separator = ",";
  }
  return write(isList ? "]" : "}");
}

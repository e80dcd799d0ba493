/** Values as the API server, a program in Go, prints them in its messages. */
import { quote } from "../lib/quote.ts";

const LONGEST = 256;
const INT64 = 2 ** 63;

/** Cut off where it would fill the screen. */
export function print(value: unknown): string {
  const text = printWhole(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Whether the API server reads the number as an integer. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < INT64;
}

/** From a million on, and below a ten thousandth, with an exponent of two digits. */
export function printFloat(value: number): string {
  const [digits, exponent = "0"] = value.toExponential().split("e");
  const power = Number(exponent);
  if (value === 0 || (power >= -4 && power < LARGEST_PLAIN)) return String(value);
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

const LARGEST_PLAIN = 6;

function printWhole(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") return isInt64(value) ? String(value) : printFloat(value);
  return json(value);
}

/** Members by name, and what could end a script in HTML escaped. */
function json(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
  return (text ?? "null").replace(
    /[<>&\u2028\u2029]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

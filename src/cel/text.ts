/** Converts values to text, for `string(x)`, `format` and log lines. */
import { Duration, Opaque, Secret, Timestamp, Type, Uint, doubleOf, isDouble, isInt } from "./values.ts";

/** Prints a timestamp by RFC 3339 in UTC, with only the fraction digits that are needed. */
function timestampText({ seconds, nanos }: Timestamp): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, -5)}${fraction(nanos)}Z`;
}

function durationText({ seconds, nanos }: Duration): string {
  const sign = seconds < 0 || nanos < 0 ? "-" : "";
  return `${sign}${Math.abs(seconds)}${fraction(Math.abs(nanos))}s`;
}

function fraction(nanos: number): string {
  return nanos === 0 ? "" : `.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
}

export function doubleText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return twoDigitExponent(Object.is(value, -0) ? "-0" : String(value));
}

/** Writes exponents with two digits: JavaScript prints 1e-7 where CEL prints 1e-07. */
export function twoDigitExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

/** @returns undefined for values without a text: lists, maps, null, bytes */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || isInt(value)) return String(value);
  if (isDouble(value)) return doubleText(doubleOf(value));
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Timestamp) return timestampText(value);
  if (value instanceof Duration) return durationText(value);
  if (value instanceof Secret) return value.toString();
  if (value instanceof Type) return value.name;
  return value instanceof Opaque ? value.toText() : undefined;
}

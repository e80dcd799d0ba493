/** The functions of the CEL standard library: sizes, string tests, conversions, optional values. */
import { checkedDuration, checkedInt, checkedTimestamp, checkedUint } from "../arithmetic.ts";
import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD, OVERFLOW } from "../errors.ts";
import { scalarText } from "../text.ts";
import {
  Double,
  Duration,
  NONE,
  Optional,
  TYPES,
  Timestamp,
  Type,
  Uint,
  doubleOf,
  isDouble,
  isInt,
  isMap,
  kindOf,
  mapSize,
  numberOf,
  toDouble,
} from "../values.ts";
import { FORMAT_FUNCTIONS } from "./format.ts";
import { MATH_FUNCTIONS } from "./math.ts";
import { matches } from "./regex.ts";
import { STRING_FUNCTIONS, codePointLength } from "./strings.ts";
import { TIME_FUNCTIONS, parseDuration, parseTimestamp } from "./time.ts";

function size(run: Run, value: unknown): unknown {
  if (typeof value === "string") return run.spendLength(value.length) ? COST_LIMIT : codePointLength(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  return isMap(value) ? mapSize(value, run) : NO_OVERLOAD;
}

function typeOf(_run: Run, value: unknown): unknown {
  const kind = kindOf(value);
  if (kind === undefined) return NO_OVERLOAD;
  return TYPES.get(kind) ?? new Type(kind);
}

/** Wraps a test between two strings. */
function textTest(test: (text: string, part: string) => boolean): CelFunction {
  return (run, text, part) => {
    if (typeof text !== "string" || typeof part !== "string") return NO_OVERLOAD;
    return run.spendLength(text.length) ? COST_LIMIT : test(text, part);
  };
}

function matchesFunction(run: Run, text: unknown, pattern: unknown): unknown {
  return typeof text === "string" && typeof pattern === "string" ? matches(run, text, pattern) : NO_OVERLOAD;
}

function toIntValue(_run: Run, value: unknown): unknown {
  if (isInt(value)) return value;
  if (value instanceof Uint) return checkedInt(value.value);
  if (isDouble(value)) {
    const number = doubleOf(value);
    // Exclude the bounds themselves, because they are not exact as doubles.
    const inside = number < 2 ** 63 && number > -(2 ** 63);
    return inside ? checkedInt(BigInt(Math.trunc(number))) : OVERFLOW;
  }
  if (typeof value === "string") {
    return /^[+-]?\d{1,24}$/.test(value) ? checkedInt(BigInt(value.replace("+", ""))) : INVALID_ARGUMENT;
  }
  return value instanceof Timestamp ? value.seconds : NO_OVERLOAD;
}

function toUintValue(_run: Run, value: unknown): unknown {
  if (value instanceof Uint) return value;
  if (isInt(value)) return checkedUint(BigInt(value));
  if (isDouble(value)) {
    const number = doubleOf(value);
    return number >= 0 && number < 2 ** 64 ? checkedUint(BigInt(Math.trunc(number))) : OVERFLOW;
  }
  if (typeof value !== "string") return NO_OVERLOAD;
  return /^\d{1,24}$/.test(value) ? checkedUint(BigInt(value)) : INVALID_ARGUMENT;
}

function toDoubleValue(_run: Run, value: unknown): unknown {
  if (isDouble(value)) return value;
  const number = numberOf(value);
  if (number !== undefined) return toDouble(Number(number));
  if (typeof value !== "string" || value.length > 512) return NO_OVERLOAD;
  if (/^[+-]?(inf|infinity)$/i.test(value)) return value.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(value)) return Number.NaN;
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(value) ? toDouble(Number(value)) : INVALID_ARGUMENT;
}

const TRUE_TEXTS: ReadonlySet<string> = new Set(["true", "True", "TRUE", "t", "1"]);
const FALSE_TEXTS: ReadonlySet<string> = new Set(["false", "False", "FALSE", "f", "0"]);

function toBoolValue(_run: Run, value: unknown): unknown {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return NO_OVERLOAD;
  if (TRUE_TEXTS.has(value)) return true;
  return FALSE_TEXTS.has(value) ? false : INVALID_ARGUMENT;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function utf8(run: Run, bytes: Uint8Array): string | Failure {
  if (run.spendLength(bytes.length)) return COST_LIMIT;
  try {
    return decoder.decode(bytes);
  } catch {
    return new Failure("invalid_utf8", "the bytes are not UTF-8 text");
  }
}

function toText(run: Run, value: unknown): unknown {
  if (value instanceof Uint8Array) return utf8(run, value);
  return value instanceof Type ? NO_OVERLOAD : (scalarText(value) ?? NO_OVERLOAD);
}

function toBytes(run: Run, value: unknown): unknown {
  if (value instanceof Uint8Array) return value;
  if (typeof value !== "string") return NO_OVERLOAD;
  return run.spendLength(value.length) ? COST_LIMIT : new TextEncoder().encode(value);
}

const PARSE_STEPS = 20;

function toDuration(run: Run, value: unknown): unknown {
  if (value instanceof Duration) return value;
  if (isInt(value)) return checkedDuration(Number(value), 0);
  return typeof value === "string" && !run.spend(PARSE_STEPS) ? parseDuration(value) : NO_OVERLOAD;
}

function toTimestamp(run: Run, value: unknown): unknown {
  if (value instanceof Timestamp) return value;
  if (isInt(value)) return checkedTimestamp(Number(value), 0);
  return typeof value === "string" && !run.spend(PARSE_STEPS) ? parseTimestamp(value) : NO_OVERLOAD;
}

function isZero(run: Run, value: unknown): boolean {
  if (value === null || value === false || value === "" || value === 0) return true;
  if (value instanceof Double) return value.value === 0;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.seconds === 0 && value.nanos === 0;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  return isMap(value) && mapSize(value, run) === 0;
}

const EMPTY = new Failure("empty_optional", "the optional has no value");

function valueOfOptional(_run: Run, value: unknown): unknown {
  if (!(value instanceof Optional)) return NO_OVERLOAD;
  return value.value === undefined ? EMPTY : value.value;
}

function unwrap(_run: Run, list: unknown): unknown {
  if (!Array.isArray(list)) return NO_OVERLOAD;
  const values: unknown[] = [];
  for (const item of list) {
    if (!(item instanceof Optional)) return NO_OVERLOAD;
    if (item.value !== undefined) values.push(item.value);
  }
  return values;
}

const SIZED = "string | bytes | list<A> | map<A, B>";
const PRINTABLE =
  "int | uint | double | bool | string | bytes | timestamp | duration | secret | ip | cidr | url | quantity";

export const STANDARD_FUNCTIONS: readonly Declaration[] = [
  [`size(${SIZED}): int`, size],
  [`.size(${SIZED}): int`, size],
  ["type(A): type", typeOf],
  [".contains(string, string): bool", textTest((text, part) => text.includes(part))],
  [".startsWith(string, string): bool", textTest((text, part) => text.startsWith(part))],
  [".endsWith(string, string): bool", textTest((text, part) => text.endsWith(part))],
  [".matches(string, string): bool", matchesFunction],
  ["matches(string, string): bool", matchesFunction],
  ["int(int | uint | double | string | timestamp): int", toIntValue],
  ["uint(int | uint | double | string): uint", toUintValue],
  ["double(int | uint | double | string): double", toDoubleValue],
  ["bool(bool | string): bool", toBoolValue],
  [`string(${PRINTABLE}): string`, toText],
  ["bytes(string | bytes): bytes", toBytes],
  ["duration(duration | string | int): duration", toDuration],
  ["timestamp(timestamp | string | int): timestamp", toTimestamp],
  ["optional.none(): optional<A>", () => NONE],
  ["optional.of(A): optional<A>", (_run, value) => new Optional(value)],
  ["optional.ofNonZeroValue(A): optional<A>", (run, value) => (isZero(run, value) ? NONE : new Optional(value))],
  [
    ".hasValue(optional<A>): bool",
    (_run, value) => (value instanceof Optional ? value.value !== undefined : NO_OVERLOAD),
  ],
  [".value(optional<A>): A", valueOfOptional],
  ["optional.unwrap(list<optional<A>>): list<A>", unwrap],
  [".unwrapOpt(list<optional<A>>): list<A>", unwrap],
  ...TIME_FUNCTIONS,
  ...STRING_FUNCTIONS,
  ...FORMAT_FUNCTIONS,
  ...MATH_FUNCTIONS,
];

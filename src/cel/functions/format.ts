/** `"…".format([…])` of the CEL strings extension. */
import type { Run } from "../budget.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD, OUT_OF_RANGE } from "../errors.ts";
import { doubleText, scalarText, twoDigitExponent } from "../text.ts";
import { Double, Uint, adopt, doubleOf, isDouble, isInt, isMap, mapGet, mapKeys, numberOf } from "../values.ts";
import type { Declaration } from "../function.ts";

const VERB = /%(?:%|(?:\.(\d{1,3}))?([a-zA-Z]))/g;
const MAX_PRECISION = 100;

const MISFORMED = /%(?!%|(?:\.\d{1,3})?[a-zA-Z])/;
/** Matches a verb that `one` does not know. */
const UNKNOWN_VERB = /%(?:\.\d{1,3})?[^sdfebxXo.%]/;

/** Returns the error of a template that does not depend on its arguments. */
export function templateFailure(template: string): Failure | undefined {
  const text = template.replaceAll("%%", "");
  return MISFORMED.test(text) || UNKNOWN_VERB.test(text) ? NOT_A_TEMPLATE : undefined;
}

const NOT_A_TEMPLATE = new Failure("invalid_argument", "a verb after % is one of s d f e b x X o");

function format(run: Run, template: unknown, args: unknown): unknown {
  if (typeof template !== "string" || !Array.isArray(args)) return NO_OVERLOAD;
  if (run.spendLength(template.length * 8)) return COST_LIMIT;
  if (MISFORMED.test(template.replaceAll("%%", ""))) return INVALID_ARGUMENT;
  let used = 0;
  let failure: Failure | undefined;
  const text = template.replace(VERB, (verb: string, precision: string | undefined, letter: string | undefined) => {
    if (letter === undefined) return "%";
    if (failure !== undefined) return "";
    if (used >= args.length) {
      failure = OUT_OF_RANGE;
      return "";
    }
    const digits = precision === undefined ? 6 : Number(precision);
    const part = digits > MAX_PRECISION ? INVALID_ARGUMENT : one(run, letter, digits, adopt(args[used++]));
    if (typeof part === "string" && !run.spendLength(part.length)) return part;
    failure = part instanceof Failure ? part : COST_LIMIT;
    return verb;
  });
  return failure ?? text;
}

function one(run: Run, letter: string, digits: number, value: unknown): string | Failure {
  switch (letter) {
    case "s":
      return anyText(run, value);
    case "d":
      return decimal(value);
    case "f":
    case "e":
      return fixed(letter, digits, value);
    case "b":
      return typeof value === "boolean" ? String(Number(value)) : inBase(2, value);
    case "o":
      return inBase(8, value);
    case "x":
      return hexadecimal(value);
    case "X": {
      const text = hexadecimal(value);
      return text instanceof Failure ? text : text.toUpperCase();
    }
    default:
      return INVALID_ARGUMENT;
  }
}

function decimal(value: unknown): string | Failure {
  if (isInt(value)) return String(value);
  if (value instanceof Uint) return String(value.value);
  return isDouble(value) ? (special(doubleOf(value)) ?? doubleText(doubleOf(value))) : INVALID_ARGUMENT;
}

function fixed(letter: "f" | "e", digits: number, value: unknown): string | Failure {
  const number = numberOf(value);
  if (number === undefined) return INVALID_ARGUMENT;
  const plain = Number(number);
  if (!Number.isFinite(plain)) return special(plain) ?? INVALID_ARGUMENT;
  return letter === "e" ? twoDigitExponent(inExponents(plain, digits)) : inFull(plain, digits);
}

/** From this value on, JavaScript's toFixed switches to exponents. */
const FIXED_LIMIT = 1e21;
const EXACT_DIGITS = 100;

function inFull(value: number, digits: number): string {
  if (Math.abs(value) >= FIXED_LIMIT) return `${BigInt(value)}${digits === 0 ? "" : `.${"0".repeat(digits)}`}`;
  return halfToEven(value.toFixed(digits), value.toFixed(EXACT_DIGITS), digits);
}

function inExponents(value: number, digits: number): string {
  const [rounded = "", exponent = ""] = value.toExponential(digits).split("e");
  const [exact = "", exactExponent = ""] = value.toExponential(EXACT_DIGITS).split("e");
  const even = halfToEven(rounded, exact, digits);
  // Rounding up a row of nines has moved the exponent; the value rounded down needs the original one.
  return even === rounded ? `${rounded}e${exponent}` : `${even}e${exactExponent}`;
}

/**
 * Rounds a half to the even neighbour, as CEL does; JavaScript rounds it away from zero. `exact` has every significant
 * digit.
 */
function halfToEven(rounded: string, exact: string, digits: number): string {
  const point = exact.indexOf(".");
  const kept = exact.slice(0, digits === 0 ? point : point + 1 + digits);
  const isHalf = /^50*$/.test(exact.slice(point + 1 + digits));
  return isHalf && Number(kept.at(-1)) % 2 === 0 ? kept : rounded;
}

function special(value: number): string | undefined {
  if (Number.isFinite(value)) return undefined;
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

function inBase(base: number, value: unknown): string | Failure {
  if (isInt(value)) return BigInt(value).toString(base);
  return value instanceof Uint ? value.value.toString(base) : INVALID_ARGUMENT;
}

function hexadecimal(value: unknown): string | Failure {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : inBase(16, value);
}

/** Formats `%s`, which accepts every value; maps print with sorted keys. */
function anyText(run: Run, value: unknown): string | Failure {
  if (run.spend(1)) return COST_LIMIT;
  if (value === null) return "null";
  if (isDouble(value) && !(value instanceof Double)) return special(value) ?? doubleText(value);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (Array.isArray(value)) {
    const parts = value.map((item) => anyText(run, adopt(item)));
    return parts.find((part) => part instanceof Failure) ?? charged(run, `[${parts.join(", ")}]`);
  }
  if (!isMap(value)) return scalarText(value) ?? NO_OVERLOAD;
  const entries: [string, string][] = [];
  for (const key of mapKeys(value, run)) {
    const name = anyText(run, key);
    const text = anyText(run, mapGet(value, key, run));
    if (name instanceof Failure) return name;
    if (text instanceof Failure) return text;
    entries.push([name, text]);
  }
  entries.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  return charged(run, `{${entries.map(([name, text]) => `${name}: ${text}`).join(", ")}}`);
}

/** Charges for a text, because each level of a nested value copies the levels below. */
function charged(run: Run, text: string): string | Failure {
  return run.spendLength(text.length) ? COST_LIMIT : text;
}

export const FORMAT_FUNCTIONS: readonly Declaration[] = [[".format(string, list<A>): string", format]];

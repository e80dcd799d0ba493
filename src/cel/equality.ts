/**
 * Equality and order of values, across the numeric types as the CEL language definition prescribes. Operators and
 * functions over lists use them; neither of them fails.
 */
import type { Run } from "./budget.ts";
import {
  Duration,
  Opaque,
  Optional,
  Timestamp,
  Type,
  Uint,
  adopt,
  isDouble,
  isInt,
  isMap,
  mapGet,
  mapKeys,
  mapSize,
  numberOf,
  type CelMap,
} from "./values.ts";

/**
 * Compares two values and charges for each pair that it visits. With a spent budget it returns false, and the
 * evaluation fails anyway.
 */
export function equals(run: Run, a: unknown, b: unknown): boolean {
  if (--run.steps < 0) return false;
  if (typeof a === "string") return typeof b === "string" && equalTexts(run, a, b);
  if (a === b) return true;
  if (typeof a === "boolean" || a === null || a === undefined) return false;
  const left = numberOf(a);
  if (left !== undefined) {
    const right = numberOf(b);
    // oxlint-disable-next-line eqeqeq -- number and bigint compare by value only with ==
    return right !== undefined && left == right;
  }
  return typeof a === "object" && typeof b === "object" && b !== null && equalObjects(run, a, b);
}

function equalTexts(run: Run, a: string, b: string): boolean {
  return a.length === b.length && !run.spendLength(a.length) && a === b;
}

function equalObjects(run: Run, a: object, b: object): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(run, a, b);
  if (a instanceof Uint8Array) {
    return b instanceof Uint8Array && !run.spendLength(a.length) && Buffer.compare(a, b) === 0;
  }
  if (a instanceof Timestamp) return b instanceof Timestamp && a.seconds === b.seconds && a.nanos === b.nanos;
  if (a instanceof Duration) return b instanceof Duration && a.seconds === b.seconds && a.nanos === b.nanos;
  if (a instanceof Type) return b instanceof Type && a.name === b.name;
  if (a instanceof Opaque) return a.equals(b);
  if (a instanceof Optional) {
    if (!(b instanceof Optional)) return false;
    return a.value === undefined ? b.value === undefined : b.value !== undefined && equals(run, a.value, b.value);
  }
  return isMap(a) && isMap(b) && equalMaps(run, a, b);
}

function equalLists(run: Run, a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, at) => equals(run, adopt(item), adopt(b[at])));
}

function equalMaps(run: Run, a: CelMap, b: CelMap): boolean {
  if (mapSize(a, run) !== mapSize(b, run)) return false;
  return mapKeys(a, run).every((key) => {
    const other = mapGet(b, key, run);
    return other !== undefined && equals(run, mapGet(a, key, run), other);
  });
}

/**
 * @returns a number below, equal to or above zero; NaN when the values are unordered; undefined when the types have no
 * order
 */
export function compare(run: Run, a: unknown, b: unknown): number | undefined {
  if (numberOf(a) !== undefined) return compareNumbers(a, b);
  if (typeof a === "string") return typeof b === "string" ? compareText(run, a, b) : undefined;
  if (typeof a === "boolean") return typeof b === "boolean" ? Number(a) - Number(b) : undefined;
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? Buffer.compare(a, b) : undefined;
  if ((a instanceof Timestamp && b instanceof Timestamp) || (a instanceof Duration && b instanceof Duration)) {
    return a.seconds - b.seconds || a.nanos - b.nanos;
  }
  return undefined;
}

function compareNumbers(a: unknown, b: unknown): number | undefined {
  let left = numberOf(a);
  let right = numberOf(b);
  if (left === undefined || right === undefined) return undefined;
  // When one side is a double, round the other side to a double first, as the language definition prescribes.
  const leftIsDouble = isDouble(a);
  if (leftIsDouble !== isDouble(b)) {
    if (leftIsDouble) right = Number(right);
    else left = Number(left);
  }
  if (left < right) return -1;
  if (left > right) return 1;
  // oxlint-disable-next-line eqeqeq -- number and bigint compare by value only with ==
  return left == right ? 0 : Number.NaN;
}

/**
 * Orders strings by code point. JavaScript orders by UTF-16 unit, which puts surrogate pairs before U+E000 to U+FFFF.
 */
function compareText(run: Run, a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  if (run.spendLength(length * 2) || a === b) return 0;
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left === right) continue;
    const leftIsHalf = left >= 0xd800 && left < 0xe000;
    if (leftIsHalf !== (right >= 0xd800 && right < 0xe000)) return leftIsHalf ? 1 : -1;
    return left - right;
  }
  return a.length - b.length;
}

/** Tells whether a value may be the key of a map literal. */
export function isMapKey(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || isInt(value) || value instanceof Uint;
}

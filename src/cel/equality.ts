/** Equality and order of values, across the numeric types as CEL defines them. Neither ever fails. */
import {
  AttributeMap,
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

export function equals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a === "string" || typeof a === "boolean" || a === null || a === undefined) return false;
  const left = numberOf(a);
  if (left !== undefined) {
    const right = numberOf(b);
    // oxlint-disable-next-line eqeqeq -- number and bigint compare by value only with ==
    return right !== undefined && left == right;
  }
  return typeof a === "object" && typeof b === "object" && b !== null && equalObjects(a, b);
}

function equalObjects(a: object, b: object): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && a.seconds === b.seconds && a.nanos === b.nanos;
  if (a instanceof Duration) return b instanceof Duration && a.seconds === b.seconds && a.nanos === b.nanos;
  if (a instanceof Type) return b instanceof Type && a.name === b.name;
  if (a instanceof Opaque) return a.equals(b);
  if (a instanceof Optional) {
    if (!(b instanceof Optional)) return false;
    return a.value === undefined ? b.value === undefined : b.value !== undefined && equals(a.value, b.value);
  }
  return isMap(a) && isMap(b) && equalMaps(a, b);
}

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, at) => equals(adopt(item), adopt(b[at])));
}

function equalMaps(a: CelMap, b: CelMap): boolean {
  if (mapSize(a) !== mapSize(b)) return false;
  return mapKeys(a).every((key) => {
    const other = mapGet(b, key);
    return other !== undefined && equals(mapGet(a, key), other);
  });
}

/** The cost of comparing, in entries, without walking deep: what a program is charged for `==`. */
export function comparisonSize(value: unknown): number {
  if (typeof value === "string") return value.length >> 6;
  if (Array.isArray(value)) return deepSize(value);
  return isMap(value) && !(value instanceof AttributeMap) ? deepSize(value) : 1;
}

function deepSize(root: unknown): number {
  let count = 0;
  const open: unknown[] = [root];
  while (open.length > 0 && count < 1_000_000) {
    const value = open.pop();
    count++;
    if (Array.isArray(value)) for (const item of value) open.push(item);
    else if (isMap(value) && !(value instanceof AttributeMap)) {
      for (const key of mapKeys(value)) open.push(mapGet(value, key));
    }
  }
  return count;
}

/** @returns below, equal to or above zero; NaN when unordered; undefined when the types have no order */
export function compare(a: unknown, b: unknown): number | undefined {
  if (numberOf(a) !== undefined) return compareNumbers(a, b);
  if (typeof a === "string") return typeof b === "string" ? compareText(a, b) : undefined;
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
  // Against a double the other side is rounded to a double first, as the language defines.
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

/** Order by code point; JavaScript's own order is by UTF-16 unit. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
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

/** Whether a value may be the key of a map literal. */
export function isMapKey(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || isInt(value) || value instanceof Uint;
}

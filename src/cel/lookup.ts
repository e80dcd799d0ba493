/** Fields and indexes of values. `undefined` means "no such entry"; only own properties of plain objects can be reached. */
import { Failure, NO_OVERLOAD, OUT_OF_RANGE } from "./errors.ts";
import { NONE, Optional, adopt, isMap, mapGet, mapHas, numberOf } from "./values.ts";

export function fieldOf(value: unknown, field: string): unknown {
  if (isMap(value)) return mapGet(value, field);
  return value instanceof Optional ? optionalField(value, field) : NO_OVERLOAD;
}

/** Whether the field exists, without making its value. */
export function hasField(value: unknown, field: string): boolean | Failure {
  if (isMap(value)) return mapHas(value, field);
  if (!(value instanceof Optional)) return NO_OVERLOAD;
  return value.value !== undefined && hasField(value.value, field);
}

export function indexOf(value: unknown, key: unknown): unknown {
  if (Array.isArray(value)) {
    const number = numberOf(key);
    if (number === undefined || !Number.isInteger(Number(number))) return NO_OVERLOAD;
    const at = Number(number);
    return at < 0 || at >= value.length ? OUT_OF_RANGE : adopt(value[at]);
  }
  if (isMap(value)) return mapGet(value, key);
  return value instanceof Optional ? optionalIndex(value, key) : NO_OVERLOAD;
}

export function optionalField(value: unknown, field: string): Optional | Failure {
  if (value instanceof Optional) return value.value === undefined ? NONE : optionalField(value.value, field);
  return wrap(fieldOf(value, field));
}

export function optionalIndex(value: unknown, key: unknown): Optional | Failure {
  if (value instanceof Optional) return value.value === undefined ? NONE : optionalIndex(value.value, key);
  const found = indexOf(value, key);
  return found === OUT_OF_RANGE ? NONE : wrap(found);
}

function wrap(value: unknown): Optional | Failure {
  if (value === undefined) return NONE;
  return value instanceof Failure || value instanceof Optional ? value : new Optional(value);
}

/**
 * Field and index access for compiled programs, and adding an entry to a map. undefined means that the entry does not
 * exist. Only own properties of plain objects are read, so an expression cannot reach a prototype.
 */
import type { Run } from "./budget.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD, OUT_OF_RANGE } from "./errors.ts";
import { NONE, Optional, adopt, isMap, mapField, mapGet, mapHas, mapHasField, numberOf } from "./values.ts";

export function fieldOf(run: Run, value: unknown, field: string): unknown {
  if (isMap(value)) return mapField(value, field, run);
  return value instanceof Optional ? optionalField(run, value, field) : NO_OVERLOAD;
}

/** Tells whether the field exists, without computing its value. */
export function hasField(run: Run, value: unknown, field: string): boolean | Failure {
  if (isMap(value)) return mapHasField(value, field, run);
  if (!(value instanceof Optional)) return NO_OVERLOAD;
  return value.value !== undefined && hasField(run, value.value, field);
}

export function indexOf(run: Run, value: unknown, key: unknown): unknown {
  if (Array.isArray(value)) {
    const number = numberOf(key);
    if (number === undefined || !Number.isInteger(Number(number))) return NO_OVERLOAD;
    const at = Number(number);
    return at < 0 || at >= value.length ? OUT_OF_RANGE : adopt(value[at]);
  }
  if (isMap(value)) return mapGet(value, key, run);
  return value instanceof Optional ? optionalIndex(run, value, key) : NO_OVERLOAD;
}

export function optionalField(run: Run, value: unknown, field: string): Optional | Failure {
  if (value instanceof Optional) return value.value === undefined ? NONE : optionalField(run, value.value, field);
  return wrap(fieldOf(run, value, field));
}

export function optionalIndex(run: Run, value: unknown, key: unknown): Optional | Failure {
  if (value instanceof Optional) return value.value === undefined ? NONE : optionalIndex(run, value.value, key);
  const found = indexOf(run, value, key);
  return found === OUT_OF_RANGE ? NONE : wrap(found);
}

function wrap(value: unknown): Optional | Failure {
  if (value === undefined) return NONE;
  return value instanceof Failure || value instanceof Optional ? value : new Optional(value);
}

/** Adds an entry to a map and fails when the key exists already. */
export function putEntry(run: Run, map: Map<unknown, unknown>, key: unknown, value: unknown): Failure | undefined {
  if (run.spend(2)) return COST_LIMIT;
  if (mapHas(map, key, run)) return new Failure("repeated_key", "the map has this key twice");
  map.set(key, value);
  return undefined;
}

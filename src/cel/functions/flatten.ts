/**
 * `flatten(v)` and `flattenRecursive(v)`: convert a map or a list so that each entry becomes an attribute of a log line
 * or a span. The writer of the attributes puts the name of the attribute before each key: `user` and `flatten(jwt)`
 * give `user.sub`.
 */
import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT } from "../errors.ts";
import { scalarText } from "../text.ts";
import { Flattened, adopt, isMap, mapGet, mapKeys } from "../values.ts";

interface Open {
  readonly path: string;
  readonly value: unknown;
}

/** Compiles one of the two forms. A value that is neither a map nor a list is returned unchanged. */
function flatten(recursive: boolean): CelFunction {
  return (run, value) => {
    if (!Array.isArray(value) && !isMap(value)) return value;
    const members = new Map<unknown, unknown>();
    // Pop from the end, so that the entries keep their order; iterate, because data may nest deeply.
    const open = entriesOf(run, "", value);
    for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
      if (run.spendLength(entry.path.length)) return COST_LIMIT;
      const inner = recursive ? entriesOf(run, `${entry.path}.`, entry.value) : [];
      if (inner.length === 0) members.set(entry.path, entry.value);
      else for (const next of inner) open.push(next);
    }
    return new Flattened(members);
  };
}

/** Returns the entries in reverse order; none for a value without entries. */
function entriesOf(run: Run, prefix: string, value: unknown): Open[] {
  if (Array.isArray(value)) {
    if (run.spend(value.length)) return [];
    return value.map((item, at) => ({ path: `${prefix}${at}`, value: adopt(item) })).toReversed();
  }
  if (!isMap(value)) return [];
  const keys = mapKeys(value, run);
  if (run.spend(keys.length)) return [];
  return keys
    .map((key) => ({ path: `${prefix}${scalarText(key) ?? ""}`, value: mapGet(value, key, run) }))
    .toReversed();
}

export const FLATTEN_FUNCTIONS: readonly Declaration[] = [
  ["flatten(A): dyn", flatten(false)],
  ["flattenRecursive(A): dyn", flatten(true)],
  ["flatten_recursive(A): dyn", flatten(true)],
];

/**
 * Finds the items that a list of type `set` or `map` must not hold, as the API server does for
 * `x-kubernetes-list-type`. The generated validators call it, so it may not import anything.
 */

export interface ListError {
  readonly index: number;
  /** "duplicate" repeats an earlier item and is reported once; "notObject" cannot have keys. */
  readonly kind: "duplicate" | "notObject";
  /** Members that identify the item, or the item itself. */
  readonly key: unknown;
}

/**
 * Returns the errors of a list. An item that cannot have keys hides all other errors, as in the API server.
 *
 * @param keys names of the members that identify an item; empty when the item identifies itself
 */
export function findListErrors(items: readonly unknown[], keys: readonly string[]): ListError[] {
  const keyless = keys.length === 0 ? -1 : items.findIndex((item) => typeof item !== "object" || Array.isArray(item));
  if (keyless >= 0) return [{ index: keyless, kind: "notObject", key: items[keyless] }];
  const seen = new Map<string, number>();
  return items.flatMap((item, index): ListError[] => {
    const key = keys.length === 0 ? item : keysOf(item, keys);
    const text = JSON.stringify(key);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times === 2 ? [{ index, kind: "duplicate", key }] : [];
  });
}

/** Returns the keys that the item has. null has none and counts as an object without them. */
function keysOf(item: unknown, keys: readonly string[]): object {
  const members = new Map<string, unknown>(Object.entries(item ?? {}));
  return Object.fromEntries(keys.filter((key) => members.has(key)).map((key) => [key, members.get(key)]));
}

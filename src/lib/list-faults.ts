/** Finds what a list of type `set` or `map` may not hold, as the API server does. */

export interface ListFault {
  readonly index: number;
  /** An item that repeats an earlier one (each is named once), or one that cannot have keys. */
  readonly kind: "duplicate" | "notObject";
  /** The members that identify the item, or the item itself. */
  readonly key: unknown;
}

/**
 * The first item that cannot have keys hides everything else that is wrong with them.
 * @param keys names of the members that identify an item; empty when the item itself does
 */
export function listFaults(items: readonly unknown[], keys: readonly string[]): ListFault[] {
  const keyless = keys.length === 0 ? -1 : items.findIndex((item) => typeof item !== "object" || Array.isArray(item));
  if (keyless >= 0) return [{ index: keyless, kind: "notObject", key: items[keyless] }];
  const seen = new Map<string, number>();
  return items.flatMap((item, index): ListFault[] => {
    const key = keys.length === 0 ? item : keysOf(item, keys);
    const text = JSON.stringify(key);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times === 2 ? [{ index, kind: "duplicate", key }] : [];
  });
}

/** Those that the item has; null has none, and is as good as an object without them. */
function keysOf(item: unknown, keys: readonly string[]): object {
  const members = new Map<string, unknown>(Object.entries(item ?? {}));
  return Object.fromEntries(keys.filter((key) => members.has(key)).map((key) => [key, members.get(key)]));
}

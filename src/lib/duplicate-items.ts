/** Finds what a list of type `set` or `map` may not hold twice. */

/**
 * @param keys names of the members that identify an item; empty when the item itself does
 * @returns the indexes of items whose identity an earlier item has
 */
export function duplicateItems(items: readonly unknown[], keys: readonly string[]): number[] {
  const seen = new Set<string>();
  return [...items.keys()].filter((index) => {
    const identity = identityOf(items[index], keys);
    if (identity === undefined) return false;
    const isKnown = seen.has(identity);
    seen.add(identity);
    return isKnown;
  });
}

/** undefined for an item without all keys: its shape is wrong, and another check says so. */
function identityOf(item: unknown, keys: readonly string[]): string | undefined {
  if (keys.length === 0) return JSON.stringify(item);
  if (typeof item !== "object" || item === null) return undefined;
  const members = new Map(Object.entries(item));
  if (!keys.every((key) => members.has(key))) return undefined;
  return JSON.stringify(keys.map((key) => members.get(key)));
}

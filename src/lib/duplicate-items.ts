/** Finds what a list of type `set` or `map` may not hold twice. */

export interface Duplicate {
  readonly index: number;
  /** The members that identify the item, or the item itself. */
  readonly key: unknown;
}

/**
 * @param keys names of the members that identify an item; empty when the item itself does
 * @returns the items whose identity an earlier item has
 */
export function duplicateItems(items: readonly unknown[], keys: readonly string[]): Duplicate[] {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const key = identityOf(item, keys);
    if (key === undefined) return [];
    const text = JSON.stringify(key);
    const isKnown = seen.has(text);
    seen.add(text);
    return isKnown ? [{ index, key }] : [];
  });
}

/** undefined for an item without all keys: its shape is wrong, and another check says so. */
function identityOf(item: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return item;
  if (typeof item !== "object" || item === null) return undefined;
  const members = new Map<string, unknown>(Object.entries(item));
  if (!keys.every((key) => members.has(key))) return undefined;
  return Object.fromEntries(keys.map((key) => [key, members.get(key)]));
}

/** Finds what a list of type `set` or `map` may not hold, as the API server does. */

export interface ListFault {
  readonly index: number;
  /** An item that repeats an earlier one (each is named once), or one that cannot have keys. */
  readonly kind: "duplicate" | "notObject";
  /** The members that identify the item, or the item itself. */
  readonly key: unknown;
}

/** @param keys names of the members that identify an item; empty when the item itself does */
export function listFaults(items: readonly unknown[], keys: readonly string[]): ListFault[] {
  const seen = new Map<string, number>();
  const repeated = items.flatMap((item, index): ListFault[] => {
    const key = identityOf(item, keys);
    if (key === undefined) return [];
    const text = JSON.stringify(key);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times === 2 ? [{ index, kind: "duplicate", key }] : [];
  });
  return [...(keys.length === 0 ? [] : withoutKeys(items)), ...repeated];
}

function withoutKeys(items: readonly unknown[]): ListFault[] {
  return items.flatMap((item, index): ListFault[] => {
    const isObject = typeof item === "object" && !Array.isArray(item);
    return isObject ? [] : [{ index, kind: "notObject", key: item }];
  });
}

/** Of the keys those that the item has; undefined for what is no object and needs to be one. */
function identityOf(item: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return item;
  if (typeof item !== "object" || item === null) return undefined;
  const members = new Map<string, unknown>(Object.entries(item));
  return Object.fromEntries(keys.filter((key) => members.has(key)).map((key) => [key, members.get(key)]));
}

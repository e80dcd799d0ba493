/**
 * Merges the lists of a strategic merge patch and orders their items. `merge.ts` uses it. Lists may be long, so items
 * are found through an index.
 */
import { isRecord } from "../is-record.ts";
import { type JsonMap, PATCH } from "./merge-types.ts";

export interface ItemFunctions {
  merge(original: JsonMap, patch: JsonMap): JsonMap;
  /** Returns a new item as it is stored, without directives. */
  strip(item: unknown): unknown;
}

/** @param key member that identifies an item; undefined for a set of scalars */
export function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  key: string | undefined,
  { merge, strip }: ItemFunctions,
): readonly unknown[] {
  if (key === undefined) return orderItems([...new Set([...original, ...patch])], patch, original, key);
  const changes = patch.filter((item) => !hasDirective(item, "delete") && !hasDirective(item, "replace"));
  if (patch.some((item) => hasDirective(item, "replace"))) return changes.map(strip);
  const deleted = new Set(patch.filter((item) => hasDirective(item, "delete")).map((item) => identify(item, key)));
  const kept = original.filter((item) => !deleted.has(identify(item, key)));
  const merged = [...kept];
  const places = placesOf(merged, key);
  for (const change of changes) {
    const id = identify(change, key);
    const at = places.get(id) ?? merged.length;
    const known = merged[at];
    merged[at] = isRecord(known) && isRecord(change) ? merge(known, change) : strip(change);
    places.set(id, at);
  }
  return orderItems(merged, changes, kept, key);
}

function hasDirective(item: unknown, directive: string): boolean {
  return isRecord(item) && item[PATCH] === directive;
}

/**
 * Interleaves the items that a patch names, in its order, with all others, in theirs. Of two items that were both there
 * before, the earlier one stays in front; an item that is new comes before the next of the others.
 * @param before the list before the patch
 */
export function orderItems(
  list: readonly unknown[],
  order: readonly unknown[],
  before: readonly unknown[],
  key: string | undefined,
): readonly unknown[] {
  const ordered = placesOf(order, key);
  const earlier = placesOf(before, key);
  const placeIn = (places: ReadonlyMap<unknown, number>, item: unknown): number =>
    places.get(identify(item, key)) ?? -1;
  const named = list
    .filter((item) => placeIn(ordered, item) >= 0)
    .sort((a, b) => placeIn(ordered, a) - placeIn(ordered, b));
  const others = list
    .filter((item) => placeIn(ordered, item) < 0)
    .sort((a, b) => placeIn(earlier, a) - placeIn(earlier, b));
  const arranged: unknown[] = [];
  let taken = 0;
  for (const item of others) {
    for (; taken < named.length; taken++) {
      const place = placeIn(earlier, named[taken]);
      if (place >= 0 && placeIn(earlier, item) < place) break;
      arranged.push(named[taken]);
    }
    arranged.push(item);
  }
  return [...arranged, ...named.slice(taken)];
}

/** Returns the first place of each item by what identifies it. */
function placesOf(items: readonly unknown[], key: string | undefined): Map<unknown, number> {
  const places = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    const id = identify(item, key);
    if (!places.has(id)) places.set(id, at);
  }
  return places;
}

export function removeScalars(list: readonly unknown[], removed: readonly unknown[]): readonly unknown[] {
  const gone = new Set(removed);
  return list.filter((item) => !gone.has(item));
}

function identify(item: unknown, key: string | undefined): unknown {
  if (key === undefined) return item;
  return isRecord(item) ? item[key] : undefined;
}

/**
 * Whether an object is still as it was applied. The server fills in defaults and others add fields of their own, so only
 * what we set is compared. Pure, but for the memory of what the server made of a value that it rewrites ("1000m" → "1").
 */
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import { deepEqual } from "../lib/deep-equal.ts";
import type { Manifest } from "./context.ts";
import { DIGEST_ANNOTATION } from "./render.ts";
import { isRecord } from "../lib/is-record.ts";

/** The members by which items of a list are known, the more telling one first. */
const ITEM_KEYS = ["mountPath", "uid", "containerPort", "name"] as const;

export interface Comparison {
  isCurrent(wanted: Manifest, live: KubeObject): boolean;
  /** @param answered the object as the server returned it when `wanted` had been applied */
  remember(wanted: Manifest, answered: KubeObject): void;
  forget(key: string): void;
}

export function createComparison(): Comparison {
  const rewritten = new Map<string, { readonly digest: string | undefined; readonly projection: unknown }>();
  return {
    isCurrent(wanted, live) {
      const known = rewritten.get(objectKey(objectId(wanted)));
      const expected = known?.digest === digestOf(wanted) ? known?.projection : undefined;
      return deepEqual(project(live, wanted), expected ?? wanted);
    },
    remember(wanted, answered) {
      const key = objectKey(objectId(wanted));
      const projection = project(answered, wanted);
      if (deepEqual(projection, wanted)) rewritten.delete(key);
      else rewritten.set(key, { digest: digestOf(wanted), projection });
    },
    forget: (key) => void rewritten.delete(key),
  };
}

function digestOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[DIGEST_ANNOTATION];
}

/** The part of `live` that `wanted` speaks of, in its order. */
function project(live: unknown, wanted: unknown): unknown {
  if (Array.isArray(wanted)) return Array.isArray(live) ? projectItems(live, wanted) : live;
  if (!isRecord(wanted) || !isRecord(live)) return live;
  return Object.fromEntries(Object.entries(wanted).map(([name, value]) => [name, project(live[name], value)]));
}

/** Items that others have added to a keyed list are theirs; a list without keys is ours as a whole. */
function projectItems(live: readonly unknown[], wanted: readonly unknown[]): readonly unknown[] {
  const key = ITEM_KEYS.find((name) => wanted.every((item) => isRecord(item) && item[name] !== undefined));
  if (key !== undefined) {
    const find = (item: unknown): unknown => live.find((other) => keyOf(other, key) === keyOf(item, key));
    return wanted.map((item) => project(find(item), item));
  }
  return live.length === wanted.length ? wanted.map((item, at) => project(live[at], item)) : live;
}

function keyOf(item: unknown, key: string): unknown {
  return isRecord(item) ? item[key] : undefined;
}

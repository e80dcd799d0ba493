/**
 * Compares an observed object with the manifest that was applied. `apply.ts` and `deployer.ts` use it.
 *
 * The API server fills in defaults, and other controllers add fields of their own, so only the fields of the manifest
 * are compared. The server also rewrites some values ("1000m" becomes "1"); the comparison remembers its answer to each
 * manifest, or the object would be applied again forever. Apart from this memory it is pure.
 */
import { DIGEST_ANNOTATION } from "../api/data-plane.ts";
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import { deepEqual } from "../lib/deep-equal.ts";
import type { Manifest } from "./objects/context.ts";
import { isRecord } from "../lib/is-record.ts";

/** Fields that identify the items of a list, the most specific first. */
const ITEM_KEYS = ["mountPath", "uid", "containerPort", "name"] as const;

export interface Comparison {
  isCurrent(wanted: Manifest, live: KubeObject): boolean;
  /** @param answered the object that the server returned when `wanted` was applied */
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

/** Returns the part of `live` that `wanted` sets, in the order of `wanted`. */
function project(live: unknown, wanted: unknown): unknown {
  if (Array.isArray(wanted)) return Array.isArray(live) ? projectItems(live, wanted) : live;
  if (!isRecord(wanted) || !isRecord(live)) return live;
  return Object.fromEntries(Object.entries(wanted).map(([name, value]) => [name, project(live[name], value)]));
}

/**
 * In a keyed list, items that other controllers added are ignored. A list without keys belongs to the manifest as a
 * whole.
 */
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

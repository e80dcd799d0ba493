/** Brings the objects of one Gateway to what they should be: applies what differs, then deletes what is no longer wanted. */
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import type { Comparison } from "./compare.ts";
import type { ObjectClient } from "./client.ts";
import type { Manifest } from "./context.ts";
import { superfluous } from "./prune.ts";

export interface Plan {
  readonly apply: readonly Manifest[];
  readonly remove: readonly KubeObject[];
}

/** @param children objects as last seen, by objectKey */
export function planChanges(
  wanted: readonly Manifest[],
  children: ReadonlyMap<string, KubeObject>,
  uid: string,
  comparison: Comparison,
): Plan {
  const apply = wanted.filter((manifest) => {
    const live = children.get(objectKey(objectId(manifest)));
    return live === undefined || !comparison.isCurrent(manifest, live);
  });
  return { apply, remove: superfluous(children.values(), wanted, uid) };
}

/**
 * @param seen is told of each object as it is after its write
 * @throws what the client throws: the rest is left for the next turn
 */
export async function carryOut(
  { apply, remove }: Plan,
  client: ObjectClient,
  comparison: Comparison,
  seen: (object: KubeObject) => void,
): Promise<void> {
  for (const manifest of apply) {
    const answered = await client.apply(manifest);
    comparison.remember(manifest, answered);
    seen(answered);
  }
  for (const object of remove) {
    await client.remove(object);
    comparison.forget(objectKey(objectId(object)));
  }
}

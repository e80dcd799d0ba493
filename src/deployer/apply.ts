/**
 * Reconciles the objects of one Gateway: applies those that differ, then deletes those that are no longer wanted.
 * `deployer.ts` uses it.
 */
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import type { Comparison } from "./compare.ts";
import type { ObjectClient } from "./client.ts";
import type { Manifest } from "./objects/context.ts";
import { superfluous } from "./prune.ts";

export interface ChangeSet {
  readonly apply: readonly Manifest[];
  readonly remove: readonly KubeObject[];
}

/** @param children the objects as last observed, by objectKey */
export function planChanges(
  wanted: readonly Manifest[],
  children: ReadonlyMap<string, KubeObject>,
  uid: string,
  comparison: Comparison,
): ChangeSet {
  const apply = wanted.filter((manifest) => {
    const live = children.get(objectKey(objectId(manifest)));
    return live === undefined || !comparison.isCurrent(manifest, live);
  });
  return { apply, remove: superfluous(children, wanted, uid) };
}

/**
 * Carries out a plan. @param seen receives each object as the server returned it
 * @throws every error of the client; the rest of the plan is left for the retry
 */
export async function carryOut(
  { apply, remove }: ChangeSet,
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

/**
 * Reconciles the objects of one Gateway: applies those that differ, then deletes those that are no longer wanted.
 * `deployer.ts` uses it.
 */
import { DIGEST_ANNOTATION } from "../api/data-plane.ts";
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import { SourceError } from "../lib/errors.ts";
import type { Comparison } from "./compare.ts";
import type { ObjectClient } from "./client.ts";
import type { Manifest } from "./objects/context.ts";
import { controllerOf, ownerOf, superfluous } from "./prune.ts";

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
 * Refuses to take over objects of somebody else: applying would rewrite them, as with a Gateway that has the name of
 * another Deployment, such as that of the controller. Objects that are observed as those of the Gateway are not asked
 * for; that leaves the first deployment of a Gateway.
 * @throws SourceError that names the object and what to do
 */
export async function refuseForeign(
  { apply }: Pick<ChangeSet, "apply">,
  children: ReadonlyMap<string, KubeObject>,
  gateway: string,
  client: Pick<ObjectClient, "inspect">,
): Promise<void> {
  const unknown = apply.map(objectId).filter((id) => !children.has(objectKey(id)));
  for (const found of await Promise.all(unknown.map((id) => client.inspect(id)))) {
    // That of an earlier Gateway of the same name is about to be collected. An object without a controller that was
    // rendered here has lost its owner, and gets it back.
    if (found === undefined || ownerOf(found)?.gateway === gateway) continue;
    const controller = controllerOf(found);
    if (controller === undefined && found.metadata.annotations?.[DIGEST_ANNOTATION] !== undefined) continue;
    const { kind, metadata } = found;
    const owner =
      controller === undefined ? "is not part of a Gateway" : `belongs to ${controller.kind} ${controller.name}`;
    throw new SourceError(
      `${kind} ${metadata.namespace}/${metadata.name} exists and ${owner}; give the Gateway another name, or delete the ${kind}`,
    );
  }
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

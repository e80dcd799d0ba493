/**
 * Finds objects of a Gateway that are no longer part of its data plane. `apply.ts` uses it. An object is deleted only
 * when the Gateway controls it and the controller has applied it, because other programs also create objects for
 * Gateways. Labels do not decide, because an overlay may change them.
 */
import { DIGEST_ANNOTATION } from "../api/data-plane.ts";
import { objectId, objectKey, type KubeObject, type ObjectMeta } from "../api/object.ts";
import { GATEWAY_GROUP, nameKey } from "../api/refs.ts";
import type { Manifest, OwnerReference } from "./objects/context.ts";
import { isServing } from "./readiness.ts";
import { WORKLOAD_KINDS } from "./objects/workload.ts";

interface ObservedOwner extends Omit<OwnerReference, "controller"> {
  readonly controller?: boolean;
}

interface Owned extends ObjectMeta {
  readonly ownerReferences?: readonly ObservedOwner[];
}

export interface Owner {
  /** Key ("namespace/name") of the Gateway. */
  readonly gateway: string;
  readonly uid: string;
}

/** Returns the owner that controls an object; there is at most one. */
export function controllerOf({ metadata }: KubeObject): ObservedOwner | undefined {
  return (metadata as Owned).ownerReferences?.find(({ controller }) => controller === true); // every object may have them
}

/** @returns the Gateway that controls the object, or undefined when none does */
export function ownerOf(object: KubeObject): Owner | undefined {
  const owner = controllerOf(object);
  if (owner?.kind !== "Gateway" || !owner.apiVersion.startsWith(`${GATEWAY_GROUP}/`)) return undefined;
  const { namespace = "" } = object.metadata;
  return { gateway: nameKey({ namespace, name: owner.name }), uid: owner.uid };
}

/** @param children objects that a Gateway of this name controls, by objectKey */
export function superfluous(
  children: ReadonlyMap<string, KubeObject>,
  wanted: readonly Manifest[],
  uid: string,
): KubeObject[] {
  const kept = new Set(wanted.map((manifest) => objectKey(objectId(manifest))));
  const workload = wanted.find(({ kind }) => WORKLOAD_KINDS.includes(kind));
  const isReplaced = workload === undefined || isServing(children.get(objectKey(objectId(workload))));
  return [...children].flatMap(([key, child]) => {
    const isOurs = child.metadata.annotations?.[DIGEST_ANNOTATION] !== undefined;
    // Objects of an earlier Gateway with the same name are left to the garbage collector.
    if (!isOurs || ownerOf(child)?.uid !== uid || kept.has(key)) return [];
    // The workload of the former kind serves until the new one does.
    return WORKLOAD_KINDS.includes(child.kind) && !isReplaced ? [] : [child];
  });
}

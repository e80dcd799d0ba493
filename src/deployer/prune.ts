/**
 * Finds objects of a Gateway that are no longer part of its data plane. `apply.ts` uses it. An object is deleted only
 * when the Gateway controls it and it carries gwproxy's label, because other programs also create objects for Gateways.
 */
import { MANAGED_BY, MANAGED_BY_LABEL } from "../api/data-plane.ts";
import { objectId, objectKey, type KubeObject, type ObjectMeta } from "../api/object.ts";
import { GATEWAY_GROUP, nameKey } from "../api/refs.ts";
import type { Manifest } from "./objects/context.ts";

interface Owned extends ObjectMeta {
  readonly ownerReferences?: readonly {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
    readonly controller?: boolean;
  }[];
}

export interface Owner {
  /** Key ("namespace/name") of the Gateway. */
  readonly gateway: string;
  readonly uid: string;
}

/** @returns the Gateway that controls the object, or undefined when none does */
export function ownerOf({ metadata }: KubeObject): Owner | undefined {
  const { ownerReferences = [], namespace = "" } = metadata as Owned; // every object may carry them
  const owner = ownerReferences.find(
    ({ apiVersion, kind, controller }) =>
      controller === true && kind === "Gateway" && apiVersion.startsWith(`${GATEWAY_GROUP}/`),
  );
  return owner === undefined ? undefined : { gateway: nameKey({ namespace, name: owner.name }), uid: owner.uid };
}

/** @param children objects that a Gateway of this name controls */
export function superfluous(children: Iterable<KubeObject>, wanted: readonly Manifest[], uid: string): KubeObject[] {
  const kept = new Set(wanted.map((manifest) => objectKey(objectId(manifest))));
  return [...children].filter((child) => {
    const isOurs = child.metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
    // Objects of an earlier Gateway with the same name are left to the garbage collector.
    return isOurs && ownerOf(child)?.uid === uid && !kept.has(objectKey(objectId(child)));
  });
}

/**
 * Checks ReferenceGrants (GEP-709), which allow an object of one namespace to reference an object in another.
 * `backend-refs.ts` and the TLS settings of listeners use it.
 */
import type { ReferenceGrant } from "../../../generated/types/gateway-api/referencegrant.ts";
import type { ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";

export interface GrantQuestion {
  readonly from: { readonly group: string; readonly kind: string; readonly namespace: string };
  readonly to: { readonly group: string; readonly kind: string; readonly namespace: string; readonly name: string };
}

/** @param byNamespace grants, indexed by the namespace of the referenced objects */
export function isGranted(
  { from, to }: GrantQuestion,
  byNamespace: ReadableIndex<ReferenceGrant>,
  read: Read,
): boolean {
  if (from.namespace === to.namespace) return true;
  return read
    .byIndex(byNamespace, to.namespace)
    .some(
      ({ value: { spec } }) =>
        spec.from.some(
          (source) => source.group === from.group && source.kind === from.kind && source.namespace === from.namespace,
        ) &&
        spec.to.some(
          (target) =>
            target.group === to.group &&
            target.kind === to.kind &&
            (target.name === undefined || target.name === "" || target.name === to.name),
        ),
    );
}

/**
 * Computes status input for GwModel and GwParameters, which have no effect in this version. `graph.ts` uses it. A
 * GwModel says so in its status, under each parent that belongs to this controller; for GwParameters, `gwproxy up` and
 * the controller print a line.
 */
import type { GwModel } from "../../generated/types/model.ts";
import type { KubeObject, ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, nameKey } from "../api/refs.ts";
import type { Readable } from "../lib/collections/collection.ts";
import type { Read } from "../lib/collections/graph.ts";
import type { ParentRefView, ParentView, GatewayView } from "./shared/views.ts";
import type { Diagnostic } from "./shared/diagnostics.ts";

export interface ModelContext {
  readonly gateways: Readable<GatewayView>;
  /** Every Gateway that exists, whichever controller owns it. */
  readonly allGateways: Readable<KubeObject>;
  /** Gateways of this controller that each HTTPRoute is attached to. */
  readonly attachments: Readable<readonly ParentView[]>;
}

/**
 * Returns the parents of a model, once per object. Parents of other controllers are left out, since their status
 * belongs to that controller.
 */
export function parentsOfModel({ spec, metadata }: GwModel, context: ModelContext, read: Read): ParentRefView[] {
  const parents = new Map<string, ParentRefView>();
  for (const ref of spec.parentRefs) {
    if ((ref.group ?? GATEWAY_GROUP) !== GATEWAY_GROUP) continue;
    const kind = ref.kind ?? "Gateway";
    const parent = { group: GATEWAY_GROUP, kind, namespace: ref.namespace ?? metadata.namespace ?? "", name: ref.name };
    if (isOurs(parent, context, read)) parents.set(`${kind} ${nameKey(parent)}`, parent);
  }
  return [...parents.values()];
}

/**
 * A Gateway that does not exist counts as ours: it may become ours, and no other controller would report it as missing.
 */
function isOurs(parent: ParentRefView, { gateways, allGateways, attachments }: ModelContext, read: Read): boolean {
  const key = nameKey(parent);
  if (parent.kind === "Gateway")
    return read.get(gateways, key) !== undefined || read.get(allGateways, key) === undefined;
  return parent.kind === "HTTPRoute" && (read.get(attachments, key) ?? []).length > 0;
}

/** Returns the diagnostic of an object that has no effect. @param what completes "this version of gwproxy …" */
export function notServed(object: ObjectId, what: string): Diagnostic {
  return { code: "not_served", severity: "warning", object, path: "spec", message: `this version of gwproxy ${what}` };
}

/**
 * GwModel and GwParameters, as far as they go: which parents of ours a model names, and that neither has an effect yet.
 * An object without effect says so in its status, or in a line of `up` and the controller: model.md 5, parameters.md.
 */
import type { GwModel } from "../../generated/types/model.ts";
import type { KubeObject, ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, nameKey } from "../api/refs.ts";
import type { Readable } from "../lib/collections/collection.ts";
import type { Read } from "../lib/collections/graph.ts";
import type { ParentView } from "./routes/attach.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { GatewayView } from "./gateways/gateway.ts";

/** As it is written into the status: without section and port. */
export interface ParentRefView {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface ModelContext {
  readonly gateways: Readable<GatewayView>;
  /** Every Gateway that exists, ours or not. */
  readonly allGateways: Readable<KubeObject>;
  /** The Gateways of ours that a route is attached to. */
  readonly attachments: Readable<readonly ParentView[]>;
}

/** Parents of other controllers are left out: their status is not ours to write. One entry for each object. */
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

/** A Gateway that does not exist may become ours, and nobody else would say that it is missing. */
function isOurs(parent: ParentRefView, { gateways, allGateways, attachments }: ModelContext, read: Read): boolean {
  const key = nameKey(parent);
  if (parent.kind === "Gateway")
    return read.get(gateways, key) !== undefined || read.get(allGateways, key) === undefined;
  return parent.kind === "HTTPRoute" && (read.get(attachments, key) ?? []).length > 0;
}

export function notServed(object: ObjectId, what: string): Diagnostic {
  return { code: "not_served", severity: "warning", object, path: "spec", message: `this version of gwproxy ${what}` };
}

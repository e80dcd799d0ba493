/**
 * Decides which groups a route is a member of, that is, which routes may delegate to it. `declare.ts` uses it.
 *
 * Both sides have to agree. A route with parentRefs has to name the parent in them, which is consent enough across
 * namespaces; a route without any can be delegated to from its own namespace, and from another one with a
 * ReferenceGrant (GEP-709).
 */
import type { HTTPRoute } from "../../../../generated/types/gateway-api/httproute.ts";
import type { ReferenceGrant } from "../../../../generated/types/gateway-api/referencegrant.ts";
import { GATEWAY_GROUP, nameKey } from "../../../api/refs.ts";
import type { ReadableIndex } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { GrantMode } from "../../references/backend-refs.ts";
import { isGranted } from "../../references/grants.ts";
import { selectorsOf, selectorText, selectsMany, type RouteOutline } from "./outline.ts";

interface Membership {
  readonly group: string;
  /** Key ("namespace/name") of the route that delegates to the group. */
  readonly parent: string;
}

export interface Memberships {
  /** Sorted by group. */
  readonly groups: readonly Membership[];
  /** The route itself delegates to others. */
  readonly delegates: boolean;
}

export interface GrantContext {
  readonly grants: ReadableIndex<ReferenceGrant>;
  readonly grantMode: GrantMode;
}

export interface MembershipContext extends GrantContext {
  /** Outlines by the selectors of their children. */
  readonly bySelector: ReadableIndex<RouteOutline>;
}

/** @returns undefined for a route that no other delegates to */
export function membershipsOf(
  route: HTTPRoute,
  { children, parents, hasParentRefs }: RouteOutline,
  { bySelector, ...context }: MembershipContext,
  read: Read,
): Memberships | undefined {
  const { namespace = "", name } = route.metadata;
  const key = nameKey({ namespace, name });
  const groups = new Map<string, Membership>();
  for (const text of selectorsOf(route))
    for (const { key: parent, value } of read.byIndex(bySelector, text)) {
      const allows = hasParentRefs
        ? parents.some((named) => named.key === parent)
        : isDelegationGranted(parent, { namespace, name }, context, read);
      if (!allows) continue;
      for (const child of value.children) {
        // A route that delegates to every route of its own namespace means the others.
        if (selectorText(child) !== text || (parent === key && selectsMany(child.selector))) continue;
        groups.set(child.group, { group: child.group, parent });
      }
    }
  if (groups.size === 0) return undefined;
  const sorted = [...groups.keys()].sort().flatMap((group) => groups.get(group) ?? []);
  return { groups: sorted, delegates: children.length > 0 };
}

/**
 * Tells whether a route may delegate to one that names no parents.
 * @param parent "namespace/name"
 * @param child its name may be "*", for which only a grant of every name counts
 */
export function isDelegationGranted(
  parent: string,
  child: { readonly namespace: string; readonly name: string },
  { grants, grantMode }: GrantContext,
  read: Read,
): boolean {
  const [namespace = ""] = parent.split("/");
  if (grantMode === "none" || namespace === child.namespace) return true;
  const from = { group: GATEWAY_GROUP, kind: "HTTPRoute", namespace };
  return isGranted({ from, to: { group: GATEWAY_GROUP, kind: "HTTPRoute", ...child } }, grants, read);
}

/** Returns "HTTPRoute namespace/name" for messages. */
export function describeRoute(id: { readonly namespace: string; readonly name: string } | string): string {
  return `HTTPRoute ${typeof id === "string" ? id : nameKey(id)}`;
}

/**
 * Declares the collections of delegation among HTTPRoutes: which routes delegate to which, where their requests come
 * from, and which delegations lead back. `../../graph.ts` uses it.
 *
 *     HTTPRoutes ─▶ outlines ─▶ memberships ─▶ ancestries ─▶ parents of each route
 *                                         └──▶ loops
 *
 * Membership is decided for each child and not for each parent: of five thousand children of one route, the edit of one
 * recomputes one.
 */
import type { HTTPRoute } from "../../../../generated/types/gateway-api/httproute.ts";
import type { Collection } from "../../../lib/collections/collection.ts";
import type { Graph, Input } from "../../../lib/collections/graph.ts";
import type { ParentView } from "../../shared/views.ts";
import { findLoops } from "./loops.ts";
import { membershipsOf, type GrantContext } from "./membership.ts";
import { outlineRoute, selectorText, type RouteOutline } from "./outline.ts";
import { ancestryOf, delegatingParents } from "./parents.ts";
import type { Delegation } from "./translate.ts";

export interface DelegationCollections extends Delegation {
  /** All parents of each route, those that delegate to it included. */
  readonly attachments: Collection<readonly ParentView[]>;
}

/** @param attachments listeners that each route is attached to by itself */
export function declareDelegation(
  graph: Graph,
  routes: Input<HTTPRoute>,
  attachments: Collection<readonly ParentView[]>,
  grants: GrantContext,
): DelegationCollections {
  const outlines = graph.derive("route outlines", routes, (_key, route) => outlineRoute(route));
  const bySelector = outlines.index(({ children }) => children.map(selectorText));
  const memberships = graph.derive("delegation memberships", routes, (key, route, read) => {
    const outline = read.get(outlines, key);
    return outline && membershipsOf(route, outline, { ...grants, bySelector }, read);
  });
  const members = memberships.groups(({ groups }, member) => groups.map(({ group }) => ({ group, member })));
  const delegatingMembers = memberships.groups(({ groups, delegates }, member) =>
    delegates ? groups.map(({ group }) => ({ group, member })) : [],
  );
  const context = { outlines, memberships, attachments };
  const delegating = graph.derive("delegating routes", outlines, (_key, outline): RouteOutline | undefined =>
    outline.children.length > 0 ? outline : undefined,
  );
  const ancestries = graph.derive("delegation ancestries", delegating, (key, _outline, read) =>
    ancestryOf(key, context, read),
  );
  const loops = graph.derive("delegation loops", delegating, (key, outline, read) =>
    findLoops(key, outline, { ...context, delegatingMembers }, read),
  );
  const parents = graph.derive("parents of HTTPRoutes", attachments, (key, attached, read): readonly ParentView[] => {
    const delegated = delegatingParents(key, { ...context, ancestries }, read);
    return delegated.length === 0 ? attached : [...attached, ...delegated];
  });
  return { ...grants, routes, memberships, members, loops, attachments: parents };
}

/**
 * Finds where the targets of a policy are attached: at which Gateway, on which of its listeners, and below which routes
 * that delegate. `declare.ts` and `find-winners.ts` use it. Targets are written as in PolicyOutline.
 */
import { routeKey } from "../../../ir/keys.ts";
import type { Collection, Readable } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../../lib/collections/groups.ts";
import type { RouteVisibility } from "../../references/visibility.ts";
import type { GatewayView, ParentView } from "../../shared/views.ts";

/** The collections of one kind of route that are read here. */
export interface AttachedRoutes {
  readonly attachments: Collection<readonly ParentView[]>;
  /** Routes, grouped by listener. */
  readonly byListener: ReadableGroups;
  readonly visibility: Readable<RouteVisibility>;
}

export interface AttachmentLookup {
  readonly read: Read;
  readonly gateways: Readable<GatewayView>;
  /** Every kind of route that policies can target, by its name. */
  readonly policyRoutes: Readonly<Record<string, AttachedRoutes>>;
}

/** Returns the keys of the listeners of a Gateway that serve, those of its ListenerSets included. */
export function servingListeners(gateway: string, { read, gateways }: AttachmentLookup): readonly string[] {
  const view = read.get(gateways, gateway);
  if (view === undefined) return [];
  const all = [...view.listeners, ...view.sets.flatMap((set) => set.listeners)];
  return all.filter(({ error }) => error === undefined).map(({ key }) => key);
}

/** Decides whether a target is part of a Gateway. @param listeners all that serve at the Gateway */
export function isAtGateway(
  target: string,
  gateway: string,
  listeners: readonly string[],
  lookup: AttachmentLookup,
): boolean {
  const [kind, name = ""] = target.split(" ");
  switch (kind) {
    case "gateway":
      return name === gateway;
    case "bind":
      return name.slice(name.indexOf("/") + 1) === gateway;
    case "listener":
      return listeners.includes(name);
    case "route":
      return listenersOfRoute(name, listeners, lookup).length > 0 || routesAbove(name, gateway, lookup).length > 0;
    default:
      // A backend belongs to no Gateway by itself; the Gateways of its policy are those that lead to it.
      return true;
  }
}

/**
 * Returns those of the listeners that a route is attached to by itself.
 * @param name "httproute/default/web", or with a rule "httproute/default/web#rule"
 */
export function listenersOfRoute(
  name: string,
  listeners: readonly string[],
  lookup: AttachmentLookup,
): readonly string[] {
  const attached = parentsOf(name, lookup).flatMap((parent) => parent.listeners.map((listener) => listener.key));
  return attached.filter((listener) => listeners.includes(listener));
}

/**
 * Returns the routes of a Gateway that delegate to a route, as "httproute/default/site".
 * @param name as for `listenersOfRoute`
 */
export function routesAbove(name: string, gateway: string, lookup: AttachmentLookup): readonly string[] {
  return parentsOf(name, lookup).flatMap(({ ref, gateways, error }) =>
    ref.kind === "HTTPRoute" && error === undefined && gateways.includes(gateway)
      ? routeKey(ref.kind, ref.namespace, ref.name)
      : [],
  );
}

function parentsOf(name: string, lookup: AttachmentLookup): readonly ParentView[] {
  const { kind, key } = locateRoute(name, lookup);
  return kind === undefined ? [] : (lookup.read.get(kind.attachments, key) ?? []);
}

/**
 * Returns the collections that hold a route, and its key in them.
 * @param name as for `listenersOfRoute`
 */
export function locateRoute(
  name: string,
  { policyRoutes }: Pick<AttachmentLookup, "policyRoutes">,
): { readonly kind: AttachedRoutes | undefined; readonly key: string } {
  const [prefix = "", namespace = "", rest = ""] = name.split("/");
  const [route = ""] = rest.split("#");
  const found = Object.entries(policyRoutes).find(
    ([kind]) => routeKey(kind, namespace, route) === `${prefix}/${namespace}/${route}`,
  );
  return { kind: found?.[1], key: `${namespace}/${route}` };
}

/**
 * Which Gateway has to know of what: a route goes where it is attached, a backend where a route reaches it, a Service
 * where a route or a backend does. Small on purpose: these values stay equal when a route is merely edited.
 */
import type { Membership } from "../../lib/collections/groups.ts";
import type { AttachableRoute, ParentView } from "../routes/attach.ts";
import type { TranslatedRoute } from "../routes/route.ts";

export interface RouteVisibility {
  readonly key: string;
  /** Gateways that accepted it, sorted. */
  readonly gateways: readonly string[];
  /** Names of rules. */
  readonly rules: readonly string[];
  readonly backends: readonly string[];
  /** It has parents, and all of them belong to other controllers. */
  readonly foreign: boolean;
}

export interface BackendVisibility {
  readonly gateways: readonly string[];
  readonly uses: readonly string[];
}

/** Gateways by the key of a port. */
export type ServiceVisibility = ReadonlyMap<string, readonly string[]>;

export function routeVisibility(
  route: AttachableRoute,
  parents: readonly ParentView[],
  translated: TranslatedRoute,
): RouteVisibility {
  return {
    key: translated.resource.key,
    gateways: [
      ...new Set(parents.filter((parent) => parent.fault === undefined).map((parent) => parent.gateway)),
    ].sort(),
    rules: (route.spec.rules ?? []).flatMap((rule) => rule.name ?? []),
    backends: translated.backends,
    foreign: parents.length === 0 && (route.spec.parentRefs ?? []).length > 0,
  };
}

/** Who uses what, from which Gateways: the groups are what is used. */
export function gatewaysByUse(uses: readonly string[], gateways: readonly string[]): Membership[] {
  return uses.flatMap((group) => gateways.map((member) => ({ group, member })));
}

/** Every Gateway of the lists, once and sorted. */
export function union(lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.flat())].sort();
}

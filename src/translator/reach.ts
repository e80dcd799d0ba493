/**
 * Which Gateway has to know of what: a route goes where it is attached, a backend where a route reaches it, a Service
 * where a route or a backend does. Small on purpose: these values stay equal when a route is merely edited.
 */
import type { Entry } from "../lib/collections/collection.ts";
import type { AttachableRoute, ParentView } from "./attach.ts";
import type { TranslatedRoute } from "./routes/route.ts";

export interface RouteReach {
  readonly key: string;
  /** Gateways that accepted it, sorted. */
  readonly gateways: readonly string[];
  /** Names of rules. */
  readonly rules: readonly string[];
  readonly backends: readonly string[];
  /** It has parents, and all of them belong to other controllers. */
  readonly foreign: boolean;
}

export interface BackendReach {
  readonly gateways: readonly string[];
  readonly uses: readonly string[];
}

/** Gateways by the key of a port. */
export type ServiceReach = ReadonlyMap<string, readonly string[]>;

export function reachOfRoute(
  route: AttachableRoute,
  parents: readonly ParentView[],
  translated: TranslatedRoute,
): RouteReach {
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

/** Every Gateway of the entries, once and sorted. */
export function gatewaysOf(
  ...groups: readonly (readonly Entry<{ readonly gateways: readonly string[] }>[])[]
): string[] {
  const found = new Set<string>();
  for (const entries of groups)
    for (const { value } of entries) for (const gateway of value.gateways) found.add(gateway);
  return [...found].sort();
}

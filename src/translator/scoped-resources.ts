/** Collections of what objects send to Gateways. */
import type { Resource } from "../ir/resource.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Derive, Graph } from "../lib/collections/graph.ts";
import { equalScopedResources, type ScopedResource } from "./resource-store.ts";

export function declareScopedResources<I>(
  graph: Graph,
  name: string,
  source: Collection<I>,
  derive: Derive<I, readonly ScopedResource[]>,
): Collection<readonly ScopedResource[]> {
  return graph.derive(name, source, derive, equalScopedResources);
}

/** @param gateways "namespace/name"; none: nobody has to know */
export function scopeTo(gateways: readonly string[] | undefined, resources: readonly Resource[]): ScopedResource[] {
  return gateways === undefined || gateways.length === 0 ? [] : resources.map((resource) => ({ resource, gateways }));
}

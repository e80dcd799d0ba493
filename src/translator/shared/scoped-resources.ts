/** Declares collections of resources together with the Gateways that get them. */
import type { Resource } from "../../ir/resource.ts";
import type { Collection } from "../../lib/collections/collection.ts";
import type { Derive, Graph } from "../../lib/collections/graph.ts";
import { equalScopedResources, type ScopedResource } from "./resource-store.ts";

export function declareScopedResources<I>(
  graph: Graph,
  name: string,
  source: Collection<I>,
  derive: Derive<I, readonly ScopedResource[]>,
): Collection<readonly ScopedResource[]> {
  return graph.derive(name, source, derive, equalScopedResources);
}

/**
 * Assigns resources to Gateways.
 * @param gateways keys ("namespace/name"); without any the result is empty, since no data plane needs the resources
 */
export function scopeTo(gateways: readonly string[] | undefined, resources: readonly Resource[]): ScopedResource[] {
  return gateways === undefined || gateways.length === 0 ? [] : resources.map((resource) => ({ resource, gateways }));
}

/** Assigns the resources of a Service. @param gateways by the key of a Service port */
export function scopeByPort(
  resources: readonly Resource[],
  gateways: ReadonlyMap<string, readonly string[]> | undefined,
): ScopedResource[] {
  return resources.flatMap((resource) => scopeTo(gateways?.get(resource.key), [resource]));
}

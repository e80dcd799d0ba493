/** Collections of what objects send to Gateways. */
import type { Resource } from "../ir/resource.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Derive, Graph } from "../lib/collections/graph.ts";
import { sameSent, type Sent } from "./resource-store.ts";

export function send<I>(
  graph: Graph,
  name: string,
  source: Collection<I>,
  derive: Derive<I, readonly Sent[]>,
): Collection<readonly Sent[]> {
  return graph.derive(name, source, derive, sameSent);
}

/** @param gateways "namespace/name"; none: nobody has to know */
export function sentTo(gateways: readonly string[] | undefined, resources: readonly Resource[]): Sent[] {
  return gateways === undefined || gateways.length === 0 ? [] : resources.map((resource) => ({ resource, gateways }));
}

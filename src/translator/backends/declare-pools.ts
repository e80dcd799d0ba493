/**
 * Declares the collections of InferencePools: their views, the resources sent to data planes, and the input for their
 * status. `../graph.ts` uses it.
 */
import type { InferencePool } from "../../../generated/types/inference/inferencepool.ts";
import type { EndpointSlice, Pod } from "../../api/core.ts";
import type { Collection, Readable } from "../../lib/collections/collection.ts";
import type { Graph, Input } from "../../lib/collections/graph.ts";
import { indexByLabels } from "../references/label-index.ts";
import type { BackendVisibility } from "../references/visibility.ts";
import type { ScopedResource } from "../shared/resource-store.ts";
import { declareScopedResources, scopeTo } from "../shared/scoped-resources.ts";
import type { StatusInput } from "../shared/status-input.ts";
import type { PoolView, ServiceView } from "../shared/views.ts";
import type { InferencePoolMode } from "../translator.ts";
import { translatePool, translatePoolEndpoints, viewPool } from "./inference-pool.ts";

export interface PoolInputs {
  readonly pools: Input<InferencePool>;
  readonly pods: Input<Pod>;
  readonly slices: Input<EndpointSlice>;
}

/** @param mode undefined where pools are not served: there are no views then */
export function declarePools(
  graph: Graph,
  { pools }: PoolInputs,
  services: Readable<ServiceView>,
  mode: InferencePoolMode | undefined,
): Collection<PoolView> {
  return graph.derive("pool views", pools, (_key, pool, read) =>
    mode === undefined ? undefined : viewPool(pool, services, read),
  );
}

export interface PoolOptions {
  readonly pools: Collection<PoolView>;
  readonly poolVisibility: Readable<BackendVisibility>;
  readonly mode: InferencePoolMode | undefined;
}

export function declarePoolResources(
  graph: Graph,
  { pods, slices }: PoolInputs,
  { pools, poolVisibility, mode }: PoolOptions,
): {
  readonly scopedResources: Collection<readonly ScopedResource[]>[];
  readonly statusInputs: Collection<StatusInput>;
} {
  const collections = {
    podsByLabels: indexByLabels(pods),
    slicesByLabels: mode === "pods-and-slices" ? indexByLabels(slices) : undefined,
  };
  const scopedResources = [
    declareScopedResources(graph, "resources of pools", pools, (key, pool, read) =>
      scopeTo(read.get(poolVisibility, key)?.gateways, [translatePool(pool)]),
    ),
    declareScopedResources(graph, "resources of pool endpoints", pools, (key, pool, read) => {
      const gateways = read.get(poolVisibility, key)?.gateways ?? [];
      return gateways.length === 0 ? [] : scopeTo(gateways, [translatePoolEndpoints(pool, collections, read)]);
    }),
  ];
  const statusInputs = graph.derive("pool status inputs", pools, (name, pool, read): StatusInput => {
    const { id, generation, key, picker } = pool;
    const { gateways = [] } = read.get(poolVisibility, name) ?? {};
    return {
      kind: "InferencePool",
      id,
      generation,
      key,
      gateways,
      error: "error" in picker ? picker.error : undefined,
    };
  });
  return { scopedResources, statusInputs };
}

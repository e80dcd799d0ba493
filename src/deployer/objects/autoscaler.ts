/** Renders the HorizontalPodAutoscaler of a data plane. An overlay says by what it scales, and how far. */
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";
import type { Workload } from "./workload.ts";

/** @param workload the workload after its overlays */
export function renderAutoscaler(context: RenderContext, { apiVersion, kind, metadata }: Workload): Manifest {
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { ...objectMeta(context), labels: metadata.labels },
    spec: { scaleTargetRef: { apiVersion, kind, name: metadata.name } },
  };
}

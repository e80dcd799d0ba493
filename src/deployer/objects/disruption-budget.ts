/** Renders the PodDisruptionBudget of a data plane. An overlay says how many pods may be missing. */
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";
import type { Workload } from "./workload.ts";

/** @param workload the workload after its overlays: an overlay may have changed what selects the pods */
export function renderDisruptionBudget(context: RenderContext, { metadata, spec }: Workload): Manifest {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { ...objectMeta(context), labels: metadata.labels },
    spec: { selector: spec.selector },
  };
}

/**
 * Renders the workload of a data plane, a Deployment or a DaemonSet. The number of replicas is left unset, because
 * setting it would fight an autoscaler.
 */
import { objectMeta, selectorLabels, type Manifest, type RenderContext } from "./context.ts";
import { renderPodTemplate } from "./pod.ts";

type WorkloadKind = "Deployment" | "DaemonSet";

export const WORKLOAD_KINDS: readonly string[] = ["Deployment", "DaemonSet"] satisfies readonly WorkloadKind[];

export interface Workload extends Manifest {
  readonly kind: WorkloadKind;
  readonly spec: { readonly selector: object; readonly template: object };
}

export function renderWorkload(context: RenderContext): Workload {
  const { plan } = context;
  return {
    apiVersion: "apps/v1",
    kind: plan.parameters.workload?.kind ?? "Deployment",
    metadata: objectMeta(context),
    spec: { selector: { matchLabels: selectorLabels(plan) }, template: renderPodTemplate(context) },
  };
}

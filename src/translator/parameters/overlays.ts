/** Names the overlays of GwParameters and the types that they are merged by. The check and the deployer use the table. */
import type { GwParametersSpec } from "../../../generated/types/parameters.ts";

export type OverlayName = Extract<
  keyof GwParametersSpec,
  "deployment" | "daemonSet" | "service" | "serviceAccount" | "podDisruptionBudget" | "horizontalPodAutoscaler"
>;

/** Type of `spec` in `generated/overlay-types.ts`; undefined for an object without a spec. */
export const OVERLAY_SPECS: Readonly<Record<OverlayName, string | undefined>> = {
  deployment: "DeploymentSpec",
  daemonSet: "DaemonSetSpec",
  service: "ServiceSpec",
  serviceAccount: undefined,
  podDisruptionBudget: "PodDisruptionBudgetSpec",
  horizontalPodAutoscaler: "HorizontalPodAutoscalerSpec",
};

export const OVERLAY_NAMES: readonly OverlayName[] = Object.keys(OVERLAY_SPECS) as OverlayName[]; // its keys by type

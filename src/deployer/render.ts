/**
 * Renders a deployment plan into the Kubernetes objects of a data plane, in the order in which they are applied: pods
 * come after everything they need. `deployer.ts` uses it. Rendering is pure: equal plans and settings give equal
 * objects.
 */
import { hash } from "node:crypto";
import { DIGEST_ANNOTATION } from "../api/data-plane.ts";
import type { Manifest, RenderContext } from "./objects/context.ts";
import { renderAccount } from "./objects/account.ts";
import { renderAutoscaler } from "./objects/autoscaler.ts";
import { renderConfig, renderXdsCa } from "./objects/config.ts";
import { renderDisruptionBudget } from "./objects/disruption-budget.ts";
import { renderService } from "./objects/service.ts";
import { renderSessionKey } from "./objects/session-key.ts";
import { renderWorkload, type Workload } from "./objects/workload.ts";
import { applyOverlays } from "./overlays.ts";

/** Number of hexadecimal digits of a digest. It distinguishes versions and is not a security measure. */
const DIGEST_LENGTH = 16;

export function render(context: RenderContext): Manifest[] {
  const { overlays } = context.plan.parameters;
  const ca = renderXdsCa(context);
  const sessionKey = renderSessionKey(context);
  const workload = renderWorkload(context);
  const overlaid = applyOverlays(workload, overlays[workload.kind === "DaemonSet" ? "daemonSet" : "deployment"]);
  return [
    applyOverlays(renderAccount(context), overlays.serviceAccount),
    renderConfig(context),
    ...(ca === undefined ? [] : [ca]),
    ...(sessionKey === undefined ? [] : [sessionKey]),
    applyOverlays(renderService(context), overlays.service),
    overlaid,
    ...renderAround(context, overlaid),
  ].map(withDigest);
}

/** Renders the objects that exist only when an overlay asks for them. */
function renderAround(context: RenderContext, workload: Workload): Manifest[] {
  const { podDisruptionBudget, horizontalPodAutoscaler } = context.plan.parameters.overlays;
  return [
    ...(podDisruptionBudget.length === 0
      ? []
      : [applyOverlays(renderDisruptionBudget(context, workload), podDisruptionBudget)]),
    ...(horizontalPodAutoscaler.length === 0
      ? []
      : [applyOverlays(renderAutoscaler(context, workload), horizontalPodAutoscaler)]),
  ];
}

/**
 * Adds a digest of the rendered object. An observed object with the right digest was applied in this very form, so a
 * restart applies nothing, and a field that is no longer rendered is noticed.
 */
function withDigest(manifest: Manifest): Manifest {
  const digest = hash("sha256", JSON.stringify(manifest)).slice(0, DIGEST_LENGTH);
  const { metadata } = manifest;
  return {
    ...manifest,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [DIGEST_ANNOTATION]: digest } },
  };
}

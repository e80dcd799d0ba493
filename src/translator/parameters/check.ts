/**
 * Finds the errors of GwParameters that its schema cannot see: overlays that are not patches of their objects, settings
 * that data planes do not have, and combinations that only the merged result shows. `resolve.ts` reports them at the
 * Gateways that use the parameters, `declare.ts` at the parameters themselves.
 */
import { OVERLAY_TYPES } from "../../../generated/overlay-types.ts";
import type { GwParametersSpec, Overlay } from "../../../generated/types/parameters.ts";
import { DIGEST_ANNOTATION } from "../../api/data-plane.ts";
import { readSettings } from "../../api/data-plane-settings.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import { findPatchErrors } from "../../lib/strategic-merge/check.ts";
import type { DeploymentParameters } from "./merge.ts";
import { OVERLAY_NAMES, OVERLAY_SPECS, type OverlayName } from "./overlays.ts";

export interface ParametersError {
  /** Field path such as "spec.deployment.spec.replicas". */
  readonly path: string;
  readonly message: string;
}

/** Finds the errors of one object, whatever Gateway uses it. */
export function findParametersErrors(spec: GwParametersSpec): readonly ParametersError[] {
  const settings = spec.rawConfig === undefined ? [] : readSettings(spec.rawConfig).errors;
  return [
    ...settings.map(({ path, message }) => ({ path: `spec.rawConfig.${path}`, message })),
    ...OVERLAY_NAMES.flatMap((name) => overlayErrors(name, spec[name])),
  ];
}

/** Prefix of the labels by which the controller watches what it has made. */
const OWN_LABELS = `${GATEWAY_GROUP}/`;

function overlayErrors(name: OverlayName, overlay: Overlay | undefined): ParametersError[] {
  const { metadata: { labels = {}, annotations = {} } = {}, spec } = overlay ?? {};
  const errors: ParametersError[] = [];
  const label = Object.keys(labels).find((key) => key.startsWith(OWN_LABELS));
  if (label !== undefined)
    errors.push({
      path: `spec.${name}.metadata.labels`,
      message: `${label} names the Gateway of an object; leave it out`,
    });
  if (Object.hasOwn(annotations, DIGEST_ANNOTATION))
    errors.push({
      path: `spec.${name}.metadata.annotations`,
      message: `${DIGEST_ANNOTATION} is the controller's; leave it out`,
    });
  const type = OVERLAY_SPECS[name];
  const path = `spec.${name}.spec`;
  if (spec === undefined) return errors;
  if (type === undefined)
    return [...errors, { path, message: "a ServiceAccount has no spec; set labels and annotations" }];
  const found = findPatchErrors(spec, { object: type }, OVERLAY_TYPES);
  return [...errors, ...found.map((error) => ({ path: `${path}.${error.path}`, message: error.message }))];
}

/** What each workload kind refuses, with the reason. */
const UNFIT: Readonly<Record<"Deployment" | "DaemonSet", Partial<Record<OverlayName, string>>>> = {
  Deployment: { daemonSet: "may be set only when workload.kind is DaemonSet, and it is Deployment" },
  DaemonSet: {
    deployment: "may be set only when workload.kind is Deployment, and it is DaemonSet",
    horizontalPodAutoscaler: "may not be set when workload.kind is DaemonSet",
  },
};

/**
 * Finds what does not fit in the merged result: an overlay for another kind of workload, and an image without a name.
 * @param spec the parameters of one level
 */
export function findMismatches(
  spec: GwParametersSpec,
  merged: Pick<DeploymentParameters, "workload" | "image">,
): readonly ParametersError[] {
  const unfit = UNFIT[merged.workload?.kind ?? "Deployment"];
  const overlays = OVERLAY_NAMES.flatMap((name) => {
    const message = spec[name] === undefined ? undefined : unfit[name];
    return message === undefined ? [] : [{ path: `spec.${name}`, message }];
  });
  const { tag, digest } = merged.image ?? {};
  const isUnpinned = spec.image?.tag === "" && tag === "" && digest === undefined;
  return isUnpinned ? [...overlays, { path: "spec.image.tag", message: "may be empty only with a digest" }] : overlays;
}

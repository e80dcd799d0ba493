/**
 * Applies the overlays of GwParameters to a rendered object: the last step of `render.ts`, and pure like all of it. The
 * translator has checked them (`src/translator/parameters/check.ts`). Overlays reach labels, annotations and `spec`; the
 * name and the owner of an object are out of their reach, and the controller knows its objects by the owner.
 */
import { OVERLAY_TYPES } from "../../generated/overlay-types.ts";
import type { Overlay } from "../../generated/types/parameters.ts";
import { isRecord } from "../lib/is-record.ts";
import { mergePatch } from "../lib/strategic-merge/merge.ts";
import type { Manifest } from "./objects/context.ts";

/** @param overlays in the order in which they are applied */
export function applyOverlays<M extends Manifest>(manifest: M, overlays: readonly Overlay[]): M {
  return overlays.reduce(applyOverlay, manifest);
}

function applyOverlay<M extends Manifest>(manifest: M, { metadata = {}, spec }: Overlay): M {
  const { labels, annotations } = manifest.metadata;
  const own = manifest["spec"];
  const type = { object: `${manifest.kind}Spec` };
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      labels: { ...labels, ...metadata.labels },
      annotations: { ...annotations, ...metadata.annotations },
    },
    ...(spec === undefined || !isRecord(own) ? {} : { spec: mergePatch(own, spec, type, OVERLAY_TYPES) }),
  };
}

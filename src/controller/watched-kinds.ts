/** Chooses the kinds that the controller watches, by its switches. `controller.ts` uses it. */
import {
  DEPLOYED_KINDS,
  INFERENCE_KINDS,
  OWN_KINDS,
  STANDARD_KINDS,
  type WatchedKind,
} from "../sources/kubernetes/kinds.ts";
import type { ControllerOptions } from "./options.ts";

export function watchedKinds({
  enableInference,
  enableModels,
}: Pick<ControllerOptions, "enableInference" | "enableModels">): readonly WatchedKind[] {
  const own = enableModels ? OWN_KINDS : OWN_KINDS.filter(({ kind }) => kind !== "GwModel");
  return [...STANDARD_KINDS, ...own, ...DEPLOYED_KINDS, ...(enableInference ? INFERENCE_KINDS : [])];
}

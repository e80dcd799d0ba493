/** Reads from the status of a workload whether its pods serve. `prune.ts` and `deployer.ts` use it. */
import type { KubeObject } from "../api/object.ts";
import { WORKLOAD_KINDS } from "./objects/workload.ts";

interface ObservedWorkload extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly numberReady?: number;
    readonly numberAvailable?: number;
    readonly desiredNumberScheduled?: number;
  };
}

/** Decides whether a workload has all the pods that it is to have, and at least one. */
export function isServing(workload: KubeObject | undefined): boolean {
  if (workload === undefined) return false;
  const { kind, metadata, spec = {}, status = {} } = workload as ObservedWorkload; // a workload by its kind
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return false;
  if (kind === "DaemonSet") {
    const { numberAvailable = 0, desiredNumberScheduled = 0 } = status;
    return numberAvailable > 0 && numberAvailable >= desiredNumberScheduled;
  }
  return (status.availableReplicas ?? 0) >= (spec.replicas ?? 1);
}

/** Decides whether an object is a workload with at least one pod that is ready. */
export function hasReadyPods(object: KubeObject): boolean {
  if (!WORKLOAD_KINDS.includes(object.kind)) return false;
  const { readyReplicas, numberReady } = (object as ObservedWorkload).status ?? {}; // a workload by its kind
  return (readyReplicas ?? numberReady ?? 0) > 0;
}

/**
 * Reports the resources that a data plane refused (NACK): it counts them in the metrics, and records an Event on the
 * Gateway. `controller.ts` uses it.
 */
import type { KubeObject, ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP } from "../api/refs.ts";
import type { EventRecorder } from "../sources/kubernetes/events.ts";
import type { ControllerMetrics } from "../telemetry/controller-metrics.ts";
import type { RejectedResource } from "../xds/nack.ts";

export interface NackReportDeps {
  readonly metrics: Pick<ControllerMetrics, "refused">;
  readonly events: Pick<EventRecorder, "warn">;
  readonly current: (id: ObjectId) => KubeObject | undefined;
}

const REASON = "GwProxyNack";

/** @param gateway "namespace/name" */
export function reportNacks(
  { metrics, events, current }: NackReportDeps,
  gateway: string,
  refused: readonly RejectedResource[],
): void {
  const [namespace = "", name = ""] = gateway.split("/");
  const object = current({ group: GATEWAY_GROUP, kind: "Gateway", namespace, name });
  for (const { type, key, reason } of refused) {
    metrics.refused(gateway, type);
    if (object !== undefined) events.warn(object, REASON, `a data plane refused ${type} ${key}: ${reason}`);
  }
}

/** What all computations of a status share: what they know beside the facts, and how a condition is made. */
import type { RouteStatusInput } from "../translator/status-input.ts";
import type { DesiredCondition } from "./desired.ts";

export interface StatusContext {
  readonly controllerName: string;
  /** Whether at least one data plane has acknowledged the resource of this key. */
  readonly acknowledged: (resourceKey: string) => boolean;
  /** What a data plane said when it refused a resource: one of this Gateway ("namespace/name"), or any when unset. */
  readonly refusal: (type: RouteStatusInput["resource"], resourceKey: string, gateway?: string) => string | undefined;
  /** What has become of a Gateway ("namespace/name"); unset where nothing is deployed for Gateways. */
  readonly deployment?: (gateway: string) => DeploymentState;
}

export interface DeploymentState {
  /** Where clients find it, as far as that is known. */
  readonly addresses: readonly GatewayAddress[];
  /** Why it could not be deployed as it should be. */
  readonly failure: string | undefined;
}

interface GatewayAddress {
  readonly type: "IPAddress" | "Hostname";
  readonly value: string;
}

export type Make = (
  type: string,
  status: boolean | DesiredCondition["status"],
  reason: string,
  message: string,
) => DesiredCondition;

export function conditionsAt(observedGeneration: number): Make {
  return (type, status, reason, message) => ({
    type,
    status: typeof status === "string" ? status : status ? "True" : "False",
    reason,
    message,
    observedGeneration,
  });
}

export function refusedBy(reason: string): string {
  return `a data plane refused it: ${reason}`;
}

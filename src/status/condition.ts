/** Holds the helpers and the context that all status computations share. */
import type { RouteStatusInput } from "../translator/shared/status-input.ts";
import type { DesiredCondition } from "./desired.ts";

export interface StatusContext {
  readonly controllerName: string;
  /** Reports whether at least one data plane has acknowledged the resource of a policy or listener. */
  readonly acknowledged: (resourceKey: string) => boolean;
  /** Reports whether a data plane of the Gateway ("namespace/name") has acknowledged its listeners. */
  readonly hasDataPlane: (gateway: string) => boolean;
  /**
   * Returns why a data plane refused a resource: one of the given Gateway ("namespace/name"), or any data plane when no
   * Gateway is given.
   */
  readonly nackReason: (
    type: RouteStatusInput["resource"],
    resourceKey: string,
    gateway?: string,
  ) => string | undefined;
  /** Returns the state of a Gateway's deployment; unset when Gateways are not deployed. */
  readonly deployment?: (gateway: string) => DeploymentState;
}

export interface DeploymentState {
  /** Addresses that clients connect to, as far as they are known. */
  readonly addresses: readonly GatewayAddress[];
  /** Explains why the deployment failed or is incomplete. */
  readonly failure: string | undefined;
  /**
   * A pod is ready, so it has the whole configuration of its Gateway, perhaps from another replica of the controller,
   * which alone has seen it acknowledged.
   */
  readonly hasReadyPods: boolean;
  /** The data plane is deployed as a member of a service mesh. */
  readonly hasMesh: boolean;
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

/** Renders how the socket of the SPIFFE workload API comes into the pods of a data plane. */
import type { Spiffe } from "../../../generated/types/parameters.ts";
import type { DeploymentParameters } from "../../translator/parameters/merge.ts";

const MOUNT_PATH = "/spiffe-workload-api";
const SOCKET_NAME = "spire-agent.sock";
const CSI_DRIVER = "csi.spiffe.io";

/** @returns undefined when identities of the workload API are switched off */
function enabledSpiffe({ spiffe }: DeploymentParameters): Spiffe | undefined {
  return spiffe?.enabled === false ? undefined : spiffe;
}

/** Returns the path of the socket in the pod; undefined when it is not mounted. */
export function spiffeSocket(parameters: DeploymentParameters): string | undefined {
  const spiffe = enabledSpiffe(parameters);
  if (spiffe === undefined) return undefined;
  const { mountPath = MOUNT_PATH, socketName = SOCKET_NAME } = spiffe.source ?? {};
  return `${mountPath.replace(/\/+$/, "")}/${socketName}`;
}

/** Returns where the folder of the socket is mounted, and from what; undefined when it is not mounted. */
export function spiffeVolume(
  parameters: DeploymentParameters,
): { readonly mountPath: string; readonly source: object } | undefined {
  const spiffe = enabledSpiffe(parameters);
  if (spiffe === undefined) return undefined;
  const { csi, hostPath, mountPath = MOUNT_PATH } = spiffe.source ?? {};
  // With the type, a pod waits for the folder instead of starting with an empty one.
  if (hostPath !== undefined) return { mountPath, source: { hostPath: { path: hostPath.path, type: "Directory" } } };
  return { mountPath, source: { csi: { driver: csi?.driver ?? CSI_DRIVER, readOnly: true } } };
}

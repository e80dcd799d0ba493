/**
 * Finds the Deployment that owns what a process makes for itself: the lease, certificates, stored key sets. The
 * controller and the webhook use it. With the owner reference the Kubernetes garbage collector removes these objects
 * when the Deployment is uninstalled.
 */
import { SourceError } from "../../lib/errors.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

/**
 * The fields blockOwnerDeletion and controller are not set: some clusters allow the first only to accounts that may
 * change the finalizers of the owner, and the processes need no such right.
 */
export interface ObjectOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * @param name name of the Deployment; undefined when the process runs outside of one, which then owns nothing
 * @throws SourceError when there is no such Deployment: objects without an owner would outlive the process unnoticed
 */
export async function findOwner(
  client: KubernetesClient,
  namespace: string,
  name: string | undefined,
): Promise<ObjectOwner | undefined> {
  if (name === undefined) return undefined;
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/deployments/${encodeURIComponent(name)}`;
  try {
    const found = (await client.request({ method: "GET", path })) as { metadata?: { uid?: unknown } }; // checked below
    const uid = found.metadata?.uid;
    if (typeof uid === "string" && uid !== "") return { apiVersion: "apps/v1", kind: "Deployment", name, uid };
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
  throw new SourceError(`there is no Deployment ${namespace}/${name}; it has to be the one that this process runs in`);
}

/** Returns the part of an object's metadata that names its owner. */
export function ownedBy(owner: ObjectOwner | undefined): { readonly ownerReferences?: readonly ObjectOwner[] } {
  return owner === undefined ? {} : { ownerReferences: [owner] };
}

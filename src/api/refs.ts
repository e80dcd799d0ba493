/**
 * API groups, and helpers for object names: keys for look-ups and text for messages. All modules of the control plane
 * use it.
 */
import type { KubeObject } from "./object.ts";

export const GATEWAY_GROUP = "gateway.networking.k8s.io";
export const GWPROXY_GROUP = "gwproxy.dev";
export const INFERENCE_GROUP = "inference.networking.k8s.io";
export const DISCOVERY_GROUP = "discovery.k8s.io";

/** Returns "namespace/name", or the name alone for cluster-scoped objects: the key in the collection of one kind. */
export function nameKey(id: { readonly namespace?: string; readonly name: string }): string {
  return id.namespace === undefined || id.namespace === "" ? id.name : `${id.namespace}/${id.name}`;
}

/** Returns the name of an object for messages, such as "HTTPRoute default/web". */
export function describeRef(ref: {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${ref.kind} ${nameKey(ref)}`;
}

/** Returns the creation time in Unix milliseconds, or 0 for an object that no API server has dated. */
export function createdAtMs(object: KubeObject): number {
  const time = Date.parse(object.metadata.creationTimestamp ?? "");
  return Number.isNaN(time) ? 0 : time;
}

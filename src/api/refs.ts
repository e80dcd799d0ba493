/** API groups, and how one object names another: defaults filled in, keys for look-ups, text for messages. */
import type { KubeObject } from "./object.ts";

export const GATEWAY_GROUP = "gateway.networking.k8s.io";
export const GWPROXY_GROUP = "gwproxy.dev";
export const DISCOVERY_GROUP = "discovery.k8s.io";

/** "namespace/name", or the name alone for cluster-scoped objects: the key inside the collection of one kind. */
export function nameKey(id: { readonly namespace?: string; readonly name: string }): string {
  return id.namespace === undefined || id.namespace === "" ? id.name : `${id.namespace}/${id.name}`;
}

/** "HTTPRoute default/web": how messages name an object. */
export function describeRef(ref: {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${ref.kind} ${nameKey(ref)}`;
}

/** Unix milliseconds; 0 for an object that no API server has dated. */
export function createdAtMs(object: KubeObject): number {
  const time = Date.parse(object.metadata.creationTimestamp ?? "");
  return Number.isNaN(time) ? 0 : time;
}

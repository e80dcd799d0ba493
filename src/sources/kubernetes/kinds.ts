/**
 * The kinds that are watched in a cluster, and what is needed to address them: versions in order of preference and
 * plural names. The Kubernetes source and the clients use the tables.
 */
import { GATEWAY_NAME_LABEL } from "../../api/data-plane.ts";
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { KINDS, type KindInfo } from "../../../generated/kinds.ts";

export interface WatchedKind {
  /** API group; "" for the core group. */
  readonly group: string;
  /** Versions in order of preference; the first one that the server serves is used. */
  readonly versions: readonly [string, ...string[]];
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Selector that makes the server leave out objects that the gateway never reads. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** Requests only names, labels and annotations. */
  readonly metadataOnly?: boolean;
  /** Drops the `spec` of objects, which for Pods is most of their bytes and is not read. */
  readonly omitsSpec?: boolean;
}

/** Returns the `accept` header for objects without their bodies, when the kind asks for it. */
export function metadataOnly(
  kind: WatchedKind,
  form: "PartialObjectMetadata" | "PartialObjectMetadataList",
): { accept?: string } {
  return kind.metadataOnly === true ? { accept: `application/json;as=${form};g=meta.k8s.io;v=v1` } : {};
}

/** Returns "/apis/GROUP/VERSION", or "/api/VERSION" for the core group. */
function versionPath(group: string, version: string): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** Returns the path at which all objects of a kind are listed and watched. */
export function collectionPath(kind: WatchedKind, version: string): string {
  return `${versionPath(kind.group, version)}/${kind.plural}`;
}

/** Returns the path of one object or of its status. */
export function objectPath(kind: WatchedKind, version: string, id: ObjectId, subresource?: "status"): string {
  const scope = kind.namespaced ? `/namespaces/${encodeURIComponent(id.namespace)}` : "";
  const name = encodeURIComponent(id.name);
  const rest = subresource === undefined ? "" : `/${subresource}`;
  return `${versionPath(kind.group, version)}${scope}/${kind.plural}/${name}${rest}`;
}

export function apiVersionOf(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Returns the key of an object within its kind. */
export function nameKey({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** Settings for watching that the table of kinds does not contain. */
const DETAILS: Readonly<Record<string, Partial<Pick<WatchedKind, "versions" | "fieldSelector" | "omitsSpec">>>> = {
  // Helm stores whole releases in Secrets, and no policy reads service account tokens. Neither may fill the memory, and
  // secrets that are not needed must not be held.
  "/Secret": { fieldSelector: "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token" },
  // Pods that have ended serve nothing, and clusters may keep thousands of them.
  "/Pod": { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed", omitsSpec: true },
  // Clusters with an older Gateway API serve ReferenceGrant only as v1beta1, with the same fields.
  "gateway.networking.k8s.io/ReferenceGrant": { versions: ["v1", "v1beta1"] },
};

function watched(kinds: readonly KindInfo[]): readonly WatchedKind[] {
  return kinds.map(({ group, version, kind, plural, namespaced }) => {
    const details = DETAILS[`${group}/${kind}`];
    return { group, versions: [version], kind, plural, namespaced, ...details };
  });
}

/** Kinds that every gateway reads besides our own. */
export const STANDARD_KINDS: readonly WatchedKind[] = watched(
  KINDS.filter(({ owned, extension }) => !owned && extension === undefined),
);

/** Kinds that are read where the inference extension is switched on. */
export const INFERENCE_KINDS: readonly WatchedKind[] = watched(
  KINDS.filter(({ extension }) => extension === "inference"),
);

/** The kinds of the group gwproxy.dev. */
export const OWN_KINDS: readonly WatchedKind[] = watched(KINDS.filter(({ owned }) => owned));

/**
 * Kinds that the controller creates for Gateways and does not read otherwise. Only objects of Gateways are watched, by a
 * label that no overlay can change; which of them are the controller's own, their owner references say.
 */
export const DEPLOYED_KINDS: readonly WatchedKind[] = [
  { group: "", versions: ["v1"] as const, kind: "ServiceAccount", plural: "serviceaccounts" },
  { group: "apps", versions: ["v1"] as const, kind: "Deployment", plural: "deployments" },
  { group: "apps", versions: ["v1"] as const, kind: "DaemonSet", plural: "daemonsets" },
  { group: "policy", versions: ["v1"] as const, kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" },
  {
    group: "autoscaling",
    versions: ["v2"] as const,
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
  },
].map((kind): WatchedKind => ({ ...kind, namespaced: true, labelSelector: GATEWAY_NAME_LABEL }));

/** Returns the query parameters that restrict a list or a watch to the wanted objects. */
export function selectors({ fieldSelector, labelSelector }: WatchedKind): Record<string, string> {
  return {
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
}

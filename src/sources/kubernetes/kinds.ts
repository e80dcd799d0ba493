/** The kinds that are watched in a cluster, with what their addresses need: versions in order of preference and plural names. */
import { MANAGED_BY, MANAGED_BY_LABEL } from "../../api/data-plane.ts";
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { KINDS, type KindInfo } from "../../../generated/kinds.ts";

export interface WatchedKind {
  /** "" for the core group. */
  readonly group: string;
  /** The first one that the server serves is used. */
  readonly versions: readonly [string, ...string[]];
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Leaves out, at the server, what is never read. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** Only names, labels and annotations are asked for. */
  readonly metadataOnly?: boolean;
}

/** The part of a request that asks for objects without their bodies, where a kind wants that. */
export function metadataOnly(
  kind: WatchedKind,
  form: "PartialObjectMetadata" | "PartialObjectMetadataList",
): { accept?: string } {
  return kind.metadataOnly === true ? { accept: `application/json;as=${form};g=meta.k8s.io;v=v1` } : {};
}

/** "/apis/GROUP/VERSION", or "/api/VERSION" for the core group. */
function versionPath(group: string, version: string): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** Where all objects of a kind are listed and watched. */
export function collectionPath(kind: WatchedKind, version: string): string {
  return `${versionPath(kind.group, version)}/${kind.plural}`;
}

/** Where one object is, or its status. */
export function objectPath(kind: WatchedKind, version: string, id: ObjectId, subresource?: "status"): string {
  const scope = kind.namespaced ? `/namespaces/${encodeURIComponent(id.namespace)}` : "";
  const name = encodeURIComponent(id.name);
  const rest = subresource === undefined ? "" : `/${subresource}`;
  return `${versionPath(kind.group, version)}${scope}/${kind.plural}/${name}${rest}`;
}

export function apiVersionOf(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}

/** The key of an object within its kind. */
export function nameKey({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** What only a watch of the kind knows. */
const DETAILS: Readonly<Record<string, Partial<Pick<WatchedKind, "versions" | "fieldSelector">>>> = {
  // Helm keeps whole releases in Secrets, and no policy reads a token: neither may fill memory or be held here.
  "/Secret": { fieldSelector: "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token" },
  // Clusters with an older Gateway API serve grants in this version alone, and their fields are the same.
  "gateway.networking.k8s.io/ReferenceGrant": { versions: ["v1", "v1beta1"] },
};

function watched(kinds: readonly KindInfo[]): readonly WatchedKind[] {
  return kinds.map(({ group, version, kind, plural, namespaced }) => {
    const details = DETAILS[`${group}/${kind}`];
    return { group, versions: [version], kind, plural, namespaced, ...details };
  });
}

/** What every gateway reads besides our own kinds. */
export const STANDARD_KINDS: readonly WatchedKind[] = watched(KINDS.filter(({ owned }) => !owned));

/** Our own kinds. */
export const OWN_KINDS: readonly WatchedKind[] = watched(KINDS.filter(({ owned }) => owned));

/** What is made for Gateways and not read otherwise; only objects that this program made are of interest. */
export const DEPLOYED_KINDS: readonly WatchedKind[] = [
  { group: "", versions: ["v1"] as const, kind: "ServiceAccount", plural: "serviceaccounts" },
  { group: "apps", versions: ["v1"] as const, kind: "Deployment", plural: "deployments" },
].map((kind): WatchedKind => ({ ...kind, namespaced: true, labelSelector: `${MANAGED_BY_LABEL}=${MANAGED_BY}` }));

/** The part of a list's or watch's query that leaves objects out. */
export function selectors({ fieldSelector, labelSelector }: WatchedKind): Record<string, string> {
  return {
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
}

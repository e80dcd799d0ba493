/**
 * Writes kinds.ts: every kind that the gateway reads, which are ours, those of the Gateway API and those of Kubernetes.
 */
import type { KindsFile } from "../load.ts";
import { header, literal } from "../print.ts";
import type { UpstreamCrd } from "../upstream.ts";

/** The kinds that only the inference extension needs. */
const INFERENCE = [
  { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true, owned: false, extension: "inference" },
];

const CORE = [
  { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true, owned: false },
  { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false, owned: false },
  { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true, owned: false },
  { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true, owned: false },
  {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
    namespaced: true,
    owned: false,
  },
];

export function emitKinds(kinds: KindsFile, upstream: readonly UpstreamCrd[]): string {
  const { group, version } = kinds;
  const own = kinds.kinds.map(({ kind, plural }) => ({ group, version, kind, plural, namespaced: true, owned: true }));
  const read = upstream.map(({ group, versions, kind, plural, namespaced, folder }) => ({
    group,
    version: versions[0] ?? "",
    kind,
    plural,
    namespaced,
    owned: false,
    ...(folder === "inference" ? { extension: folder } : {}),
  }));
  return `${header("//", "crds/schemas")}
export interface KindInfo {
  /** "" is the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Resource name in the URLs of the API server. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** True for kinds of gwproxy, whose CRDs are in crds/. */
  readonly owned: boolean;
  /** Set for kinds that are read only where a setting asks for this extension. */
  readonly extension?: "inference";
}

export const KINDS: readonly KindInfo[] = ${literal([...own, ...read, ...CORE, ...INFERENCE])};
`;
}

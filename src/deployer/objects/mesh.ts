/**
 * Renders the membership of a data plane in a service mesh. In this version data planes do nothing with it: pods get the
 * labels that keep the mesh from capturing their traffic, and the variables and volumes that a member would read.
 */
import type { EnvVar, Mesh } from "../../../generated/types/parameters.ts";
import type { DeployerSettings, RenderContext } from "./context.ts";

type MeshContext = Pick<RenderContext, "plan"> & { readonly settings: Pick<DeployerSettings, "mesh" | "className"> };

/** Returns the mesh of a Gateway as its parameters describe it; undefined when it has none. */
function meshOf({ plan, settings }: MeshContext): Mesh | undefined {
  const { mesh } = plan.parameters;
  const isAutomatic = settings.mesh.autoEnabled && plan.className === settings.className;
  return (mesh?.enabled ?? (mesh !== undefined || isAutomatic)) ? (mesh ?? {}) : undefined;
}

export function hasMesh(context: MeshContext): boolean {
  return meshOf(context) !== undefined;
}

export function meshLabels(context: RenderContext): Readonly<Record<string, string>> {
  return hasMesh(context) ? { "istio.io/dataplane-mode": "none", "sidecar.istio.io/inject": "false" } : {};
}

export function meshVariables(context: RenderContext): EnvVar[] {
  const mesh = meshOf(context);
  if (mesh === undefined) return [];
  const { caAddress, clusterId, network } = context.settings.mesh;
  return [
    { name: "CA_ADDRESS", value: mesh.caAddress ?? caAddress },
    { name: "TRUST_DOMAIN", value: mesh.trustDomain ?? "cluster.local" },
    { name: "ADDITIONAL_TRUST_DOMAINS", value: (mesh.additionalTrustDomains ?? []).join(",") },
    { name: "CLUSTER_ID", value: mesh.clusterId ?? clusterId },
    { name: "NETWORK", value: mesh.network ?? network },
  ];
}

export function meshVolumes(context: RenderContext): { name: string; mountPath: string; source: object }[] {
  if (!hasMesh(context)) return [];
  const token = { audience: "istio-ca", expirationSeconds: 43_200, path: "istio-token" };
  return [
    {
      name: "istiod-ca-cert",
      mountPath: "/var/run/secrets/istio",
      // Optional, because a namespace that the mesh does not know has no such ConfigMap, and pods would not start.
      source: { configMap: { name: "istio-ca-root-cert", optional: true } },
    },
    {
      name: "istio-token",
      mountPath: "/var/run/secrets/tokens",
      source: { projected: { sources: [{ serviceAccountToken: token }] } },
    },
  ];
}

/**
 * The kinds that have no namespace; normalise.ts uses the list. An API server could be asked for the scope, a file
 * cannot; kinds that are not listed count as namespaced.
 */
import { KINDS } from "../../../generated/kinds.ts";

const CLUSTER_SCOPED = new Set([
  ...KINDS.filter(({ namespaced }) => !namespaced).map(({ group, kind }) => `${group}/${kind}`),
  "/Node",
  "/PersistentVolume",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "rbac.authorization.k8s.io/ClusterRole",
  "rbac.authorization.k8s.io/ClusterRoleBinding",
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration",
  "admissionregistration.k8s.io/MutatingWebhookConfiguration",
]);

export function isClusterScoped(apiVersion: string, kind: string): boolean {
  const slash = apiVersion.indexOf("/");
  return CLUSTER_SCOPED.has(`${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`);
}

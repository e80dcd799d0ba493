/** Decides which namespaces may attach routes and ListenerSets (Gateway API `allowedRoutes`, `allowedListeners`). */
import { matchesSelector } from "../../api/label-selector.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ListenerView } from "../shared/views.ts";

/**
 * Decides whether a listener or Gateway allows objects of a namespace.
 * @param own namespace of the object that sets the rule
 */
export function allowsNamespace(
  { from, selector }: ListenerView["namespaces"],
  own: string,
  namespace: string,
  { namespaces, read }: { namespaces: Readable<KubeObject>; read: Read },
): boolean {
  if (from === "All") return true;
  if (from === "Same") return namespace === own;
  if (from !== "Selector") return false;
  const labels = read.get(namespaces, namespace)?.metadata.labels ?? {};
  // Kubernetes sets this label on every namespace. It is added here because files usually hold no Namespace objects,
  // and it overrides a stored value because a Namespace object must not forge it.
  return matchesSelector(selector, { ...labels, "kubernetes.io/metadata.name": namespace });
}

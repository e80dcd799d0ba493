/**
 * Writes the templates of the chart gwproxy-crds: the CRDs with all descriptions, as templates, so that `helm upgrade`
 * applies a new version of them. Uninstalling the chart keeps them, because every object of the kinds would go with them.
 */
import { DOCUMENTED } from "./crds.ts";

/** @param crds text by path below crds, from emitCrds. @returns text by file name */
export function emitCrdChart(crds: ReadonlyMap<string, string>): Map<string, string> {
  const prefix = `${DOCUMENTED}/`;
  const documented = [...crds].filter(([path]) => path.startsWith(prefix));
  return new Map(documented.map(([path, text]) => [path.slice(prefix.length), escapeActions(keep(text))]));
}

/** Adds the annotation that keeps an object when its release is uninstalled. */
function keep(text: string): string {
  const kept = text.replace(/^metadata:\n/m, "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n");
  if (kept === text) throw new Error("a CRD without metadata");
  return kept;
}

/** Escapes what Helm would read as an action of a template. */
function escapeActions(text: string): string {
  return text.replaceAll("{{", '{{ "{{" }}');
}

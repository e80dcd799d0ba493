/**
 * Suggests a remedy for a diagnostic of the translator. `gwproxy up` and `gwproxy validate` print it after the message.
 */
import { type KubeObject, objectId } from "../../api/object.ts";
import { describeRef } from "../../api/refs.ts";
import type { Diagnostic } from "../shared/diagnostics.ts";
import { findReferences, type ObjectIndex, type Reference } from "./find.ts";
import { entryNames } from "./parts.ts";
import { valuesAt } from "./places.ts";
import { grantFor } from "./suggest.ts";

export interface Explanation {
  /** The reference that the diagnostic is about; undefined when it is about something else. */
  readonly reference: Reference | undefined;
  /** Path of the field that is wrong. */
  readonly path: string;
  /** "" when there is no suggestion. */
  readonly suggestion: string;
}

/** @param references the references of the object, from findReferences */
export function explainDiagnostic(
  diagnostic: Diagnostic,
  object: KubeObject,
  references: readonly Reference[],
  index: ObjectIndex,
): Explanation {
  const about = references.filter((reference) => isAbout(diagnostic, reference));
  const reference = about.find(({ error }) => error !== undefined) ?? about[0];
  const isMorePrecise = reference !== undefined && isAtOrBelow(reference.path, diagnostic.path);
  const near = isMorePrecise ? reference.path : diagnostic.path;
  const { path, suggestion } = reference?.error ?? { path: near, suggestion: "" };
  const next = suggestion === "" ? nextStep(diagnostic, object, reference, index) : suggestion;
  return { reference, path, suggestion: next };
}

/** Returns the suggestion alone, for a diagnostic whose object is looked up in the index. */
export function suggestNextStep(diagnostic: Diagnostic, index: ObjectIndex): string {
  const known = index.get(diagnostic.object);
  if (known === undefined) return "";
  return explainDiagnostic(diagnostic, known.object, findReferences(known.object, index), index).suggestion;
}

/**
 * Decides whether a diagnostic is about a reference. It is when its path is at or below that of the reference; or when
 * its path is above and its message names the target; or when it contains the message of the reference's own error.
 */
function isAbout({ path, message }: Diagnostic, reference: Reference): boolean {
  if (isAtOrBelow(path, reference.path)) return true;
  if (isAtOrBelow(reference.path, path) && message.includes(describeRef(reference.target))) return true;
  return reference.error !== undefined && message.includes(reference.error.message);
}

export function isAtOrBelow(path: string, above: string): boolean {
  return path === above || above === "" || path.startsWith(`${above}.`) || path.startsWith(`${above}[`);
}

function nextStep(
  diagnostic: Diagnostic,
  object: KubeObject,
  reference: Reference | undefined,
  index: ObjectIndex,
): string {
  const { code, message } = diagnostic;
  const from = objectId(object);
  if (reference !== undefined && message.includes("ReferenceGrant"))
    return `permit it there: ${grantFor(from, reference.target)}`;
  const target = reference === undefined ? undefined : index.get(reference.target)?.object;
  if (target !== undefined && (target.kind === "Secret" || target.kind === "ConfigMap") && /entry|PEM/.test(message)) {
    const entries = entryNames(target);
    return `${describeRef(objectId(target))} has ${entries.length === 0 ? "no entries" : `the entries ${entries.join(", ")}`}`;
  }
  if (/[sS]electors?(?:\[\d+\])?$/.test(diagnostic.path)) return "correct matchLabels, or give the object these labels";
  switch (code) {
    case "no_matching_listener_hostname":
      return target === undefined ? "" : hostnameStep(target);
    case "not_allowed_by_listeners":
      return namespaceStep(from.kind, from.namespace);
    case "unsupported_protocol":
      return protocolStep(message);
    case "no_matching_parent":
      if (message.includes("does not delegate")) return "name this route in a backendRef of a rule there";
      return message.includes("cannot serve") ? "mend the listener, or name another one" : "name a Gateway that exists";
    case "not_allowed":
      return "set spec.allowedListeners.namespaces.from: All in the Gateway, or Same where both are in one namespace";
    default:
      return STEPS[code] ?? (message.startsWith("this version of gwproxy") ? "remove it" : "");
  }
}

const STEPS: Readonly<Record<string, string>> = {
  protocol_conflict: "give one of the listeners another port, or both the same protocol",
  hostname_conflict: "give the listener another hostname or port",
  invalid_route_kinds: "remove these kinds from allowedRoutes.kinds",
  target_unattached: "name a Gateway of the class gwproxy in its parentRefs, or a route that leads to it",
  incompatible_filters: "remove the filter, or say the same in a GwPolicy",
};

function protocolStep(message: string): string {
  const [, wanted = "", served = ""] = /^protocol (\S+) is not served; these are: (.*)$/.exec(message) ?? [];
  const near = served.split(", ").find((protocol) => protocol === wanted.toUpperCase());
  return near === undefined ? "use one of these protocols" : `did you mean \`${near}\`?`;
}

function hostnameStep(parent: KubeObject): string {
  const hosts = valuesAt(parent, ["spec", "listeners", "*"]).flatMap(({ value: { hostname } }) =>
    typeof hostname === "string" && hostname !== "" ? [hostname] : [],
  );
  return `the listeners serve ${[...new Set(hosts)].join(", ")}; use such a hostname, or change that of a listener`;
}

function namespaceStep(kind: string, namespace: string): string {
  return `in a listener set allowedRoutes.namespaces.from: All, or Selector for namespace ${namespace}, and let allowedRoutes.kinds have ${kind}`;
}

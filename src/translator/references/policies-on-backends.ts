/**
 * Finds the GwPolicies that target a Service, GwBackend or InferencePool directly, in order of precedence. The
 * visibility of destinations and remote JWKS use it.
 */
import type { GwPolicy } from "../../../generated/types/policy.ts";
import { createdAtMs } from "../../api/refs.ts";
import type { Collection, Entry, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";

export interface GovernedBackend {
  readonly kind: "Service" | "GwBackend" | "InferencePool";
  readonly namespace: string;
  readonly name: string;
  /** Section that a policy can name, such as the port of a Service; undefined when policies of any section count. */
  readonly section: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Indexes policies under "Kind/namespace/name" for each backend that they name, and under "Kind/namespace" for each
 * selector. Without a `backend` block they count on an InferencePool only, the one backend with traffic policies.
 */
export function indexBackendPolicies(policies: Collection<GwPolicy>): ReadableIndex<GwPolicy> {
  return policies.index(({ metadata, spec }) => {
    const { backend, targetRefs = [], targetSelectors = [] } = spec;
    const namespace = metadata.namespace ?? "";
    const counts = ({ kind }: { readonly kind: string }): boolean => backend !== undefined || kind === "InferencePool";
    return [
      ...targetRefs.filter(counts).map(({ kind, name }) => `${kind}/${namespace}/${name}`),
      ...targetSelectors.filter(counts).map(({ kind }) => `${kind}/${namespace}`),
    ];
  });
}

/**
 * Returns policies on the section before those on the whole backend, and the older before the younger.
 * @param policies the index that indexBackendPolicies returns
 */
export function policiesOn(
  backend: GovernedBackend,
  policies: ReadableIndex<GwPolicy>,
  read: Read,
): readonly Entry<GwPolicy>[] {
  const { kind, namespace, name } = backend;
  const entries = new Map(
    [...read.byIndex(policies, `${kind}/${namespace}/${name}`), ...read.byIndex(policies, `${kind}/${namespace}`)].map(
      (entry) => [entry.key, entry],
    ),
  );
  return [...entries.values()]
    .flatMap((entry) => {
      const section = sectionOf(entry.value, backend);
      return section === undefined ? [] : [{ ...entry, rank: section === "" ? 1 : 0 }];
    })
    .sort((a, b) => a.rank - b.rank || createdAtMs(a.value) - createdAtMs(b.value) || (a.key < b.key ? -1 : 1));
}

/**
 * @returns the section that the policy targets, "" when it targets the whole backend, undefined when it targets neither
 */
function sectionOf({ spec }: GwPolicy, { kind, name, section, labels }: GovernedBackend): string | undefined {
  const sections = [
    ...(spec.targetRefs ?? []).filter((ref) => ref.kind === kind && ref.name === name),
    ...(spec.targetSelectors ?? []).filter(
      (ref) => ref.kind === kind && Object.entries(ref.matchLabels).every(([label, value]) => labels[label] === value),
    ),
  ].map((ref) => ref.sectionName ?? "");
  if (section === undefined) return sections[0];
  if (section !== "" && sections.includes(section)) return section;
  return sections.includes("") ? "" : undefined;
}

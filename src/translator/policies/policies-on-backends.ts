/** Which GwPolicies with a `backend` block govern a Service or GwBackend directly, the one that counts most first. */
import type { GwPolicy } from "../../../generated/types/policy.ts";
import { createdAtMs } from "../../api/refs.ts";
import type { Collection, Entry, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";

export interface GovernedBackend {
  readonly kind: "Service" | "GwBackend";
  readonly namespace: string;
  readonly name: string;
  /** Port of a Service, as a section is named; undefined: policies of any section count. */
  readonly section: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/** By "Kind/namespace/name" of the backends that a policy names, and by "Kind/namespace" where it selects. */
export function indexBackendPolicies(policies: Collection<GwPolicy>): ReadableIndex<GwPolicy> {
  return policies.index(({ metadata, spec }) => {
    if (spec.backend === undefined) return [];
    const namespace = metadata.namespace ?? "";
    return [
      ...(spec.targetRefs ?? []).map(({ kind, name }) => `${kind}/${namespace}/${name}`),
      ...(spec.targetSelectors ?? []).map(({ kind }) => `${kind}/${namespace}`),
    ];
  });
}

/** Those of its section before those of all of it, the older one first. @param policies as indexBackendPolicies lists them */
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

/** @returns the section by which a policy targets the backend, "" for the whole of it, undefined when it does not */
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

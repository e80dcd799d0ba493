/**
 * Finds the references of an object and resolves each, with the nearest name as a suggestion when the target is
 * missing. `gwproxy validate` shows the results beside the translator's diagnostics, and `gwproxy up` takes its
 * suggestions from them.
 */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import { describeRef } from "../../api/refs.ts";
import { isRecord } from "../../lib/is-record.ts";
import { referencePlaces, type ReferencePlace, valuesAt } from "./places.ts";
import { missingPart } from "./parts.ts";
import { suggestKind, suggestObject } from "./suggest.ts";

/** The known objects, rejected ones included. */
export interface ObjectIndex {
  get(id: ObjectId): KnownObject | undefined;
  list(group: string, kind: string): readonly KubeObject[];
}

export interface KnownObject {
  readonly object: KubeObject;
  /**
   * The object breaks a rule of its kind. Its own violations say so, and an error of each reference to it would only
   * repeat them.
   */
  readonly isRefused: boolean;
}

export interface Reference {
  readonly path: string;
  readonly target: ObjectId;
  readonly isTargetRefused: boolean;
  /** Describes the error; undefined when the reference resolves. */
  readonly error: ReferenceDiagnostic | undefined;
}

interface ReferenceDiagnostic {
  /** Path of the wrong member, such as "spec.parentRefs[0].name". */
  readonly path: string;
  readonly message: string;
  readonly suggestion: string;
  /** No object of this kind is known at all, so the target may exist in a place that was not read. */
  readonly isKindUnknown: boolean;
}

export function findReferences(object: KubeObject, index: ObjectIndex): Reference[] {
  const from = objectId(object);
  return referencePlaces(from.group, from.kind).flatMap((place) =>
    valuesAt(object, place.path).flatMap(({ path, value }) => {
      const reference = resolve(path, value, place, { from, index });
      return reference === undefined ? [] : [reference];
    }),
  );
}

interface Context {
  readonly from: ObjectId;
  readonly index: ObjectIndex;
}

function resolve(
  path: string,
  ref: Readonly<Record<string, unknown>>,
  place: ReferencePlace,
  { from, index }: Context,
): Reference | undefined {
  const target = targetOf(ref, place, from.namespace);
  if (target === undefined) return undefined;
  const broken = (member: string, message: string, suggestion: string, isKindUnknown = false): Reference => ({
    path,
    target,
    isTargetRefused: false,
    error: { path: `${path}.${member}`, message, suggestion, isKindUnknown },
  });
  if (!place.kinds.includes(`${target.group}/${target.kind}`)) {
    const group = target.group === "" ? "the core group" : `the group ${target.group}`;
    const message = `${target.kind} of ${group} cannot be named here`;
    return broken(isKindListed(target, place) ? "group" : "kind", message, suggestKind(target, place.kinds));
  }
  // A name that selects, such as "*" for routes and models, may select nothing yet.
  if (target.name === "*" || target.name.includes("=")) return undefined;
  const found = index.get(target);
  if (found === undefined) {
    const isKindUnknown = index.list(target.group, target.kind).length === 0;
    const message = `${describeRef(target)} not found`;
    const hasNamespace = place.path.some((step) => NAMESPACED_FIELDS.has(step));
    const isElsewhere =
      target.namespace !== from.namespace && index.get({ ...target, namespace: from.namespace }) !== undefined;
    const suggestion = suggestObject(target, { from, index, hasNamespace, kinds: place.kinds });
    return broken(isElsewhere ? "namespace" : "name", message, suggestion, isKindUnknown);
  }
  if (found.isRefused) return { path, target, isTargetRefused: true, error: undefined };
  const part = missingPart(ref, found.object, path);
  if (part !== undefined) return broken(part.member, part.message, part.suggestion);
  return { path, target, isTargetRefused: false, error: undefined };
}

/** Fields whose references may name a namespace. */
const NAMESPACED_FIELDS: ReadonlySet<string> = new Set([
  "parentRefs",
  "parentRef",
  "backendRefs",
  "backendRef",
  "certificateRefs",
  "clientCertificateRef",
]);

function targetOf(
  ref: Readonly<Record<string, unknown>>,
  { kinds }: ReferencePlace,
  ownNamespace: string,
): ObjectId | undefined {
  const [usual = "/"] = kinds;
  const name = text(ref["name"]);
  if (name === undefined) return undefined;
  return {
    group: typeof ref["group"] === "string" ? ref["group"] : (usual.split("/")[0] ?? ""),
    kind: text(ref["kind"]) ?? usual.split("/")[1] ?? "",
    namespace: text(ref["namespace"]) ?? ownNamespace,
    name,
  };
}

function isKindListed({ kind }: ObjectId, { kinds }: ReferencePlace): boolean {
  return kinds.some((groupKind) => groupKind.endsWith(`/${kind}`));
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Indexes a list of objects. When two objects have the same name, the first counts. */
export function indexObjects(objects: readonly KnownObject[]): ObjectIndex {
  const byKind = new Map<string, Map<string, KnownObject>>();
  for (const known of objects) {
    const { group, kind, namespace, name } = objectId(known.object);
    if (!isRecord(known.object)) continue;
    const ofKind = byKind.get(`${group}/${kind}`) ?? new Map<string, KnownObject>();
    byKind.set(`${group}/${kind}`, ofKind);
    if (!ofKind.has(`${namespace}/${name}`)) ofKind.set(`${namespace}/${name}`, known);
  }
  return {
    get: ({ group, kind, namespace, name }) => byKind.get(`${group}/${kind}`)?.get(`${namespace}/${name}`),
    list: (group, kind) => [...(byKind.get(`${group}/${kind}`)?.values() ?? [])].map(({ object }) => object),
  };
}

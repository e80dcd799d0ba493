/**
 * Suggests a remedy for a reference that does not resolve: the nearest name, the namespace that has the object, or what
 * to write. `find.ts` and `explain.ts` use it.
 */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import { describeRef, GATEWAY_GROUP } from "../../api/refs.ts";
import { closest } from "../../lib/suggest.ts";
import type { ObjectIndex } from "./find.ts";

/** A list of existing names shows at most this many. */
const MAX_NAMES = 5;

export interface SuggestionContext {
  readonly from: ObjectId;
  readonly index: ObjectIndex;
  /** The reference may name a namespace. */
  readonly hasNamespace: boolean;
  /** Allowed kinds as "group/Kind". */
  readonly kinds: readonly string[];
}

export function suggestObject(target: ObjectId, { from, index, hasNamespace, kinds }: SuggestionContext): string {
  const ids = index.list(target.group, target.kind).map(objectId);
  const sameName = ids.find(({ name }) => name === target.name);
  if (sameName !== undefined) return suggestNamespace(target, sameName.namespace, from, hasNamespace);
  const local = ids.filter(({ namespace }) => namespace === target.namespace).map(({ name }) => name);
  const near = closest(target.name, local);
  if (near !== undefined) return `did you mean \`${near}\`?`;
  const other = kinds.find((groupKind) => index.get({ ...target, ...split(groupKind) }) !== undefined);
  if (other !== undefined) {
    const { group, kind } = split(other);
    return `there is a ${kind} of that name: set group: ${JSON.stringify(group)} and kind: ${kind}`;
  }
  const elsewhere = ids.find(({ name }) => closest(target.name, [name]) !== undefined);
  if (elsewhere !== undefined) return `did you mean \`${elsewhere.name}\` in namespace ${elsewhere.namespace}?`;
  if (local.length === 0) return `write a ${target.kind} ${target.name} for namespace ${target.namespace}`;
  return `namespace ${target.namespace} has ${listNames(local)}`;
}

function suggestNamespace(target: ObjectId, namespace: string, from: ObjectId, hasNamespace: boolean): string {
  const exists = `${target.kind} ${target.name} exists in namespace ${namespace}`;
  if (!hasNamespace)
    return `${exists}; this reference stays in its own namespace: write it for namespace ${from.namespace} too`;
  if (namespace === from.namespace) return `${exists}: remove the namespace from the reference`;
  const step = `${exists}: set namespace: ${namespace}`;
  if (target.group === GATEWAY_GROUP) return step;
  return `${step}, and permit it there: ${grantFor(from, { ...target, namespace })}`;
}

/** Returns the ReferenceGrant that permits a reference, as flow YAML to copy. */
export function grantFor(from: ObjectId, target: ObjectId): string {
  const name = `${from.namespace}-${from.kind.toLowerCase()}`;
  const source = `{group: ${from.group}, kind: ${from.kind}, namespace: ${from.namespace}}`;
  const to = `{group: ${JSON.stringify(target.group)}, kind: ${target.kind}, name: ${target.name}}`;
  return `{apiVersion: ${GATEWAY_GROUP}/v1, kind: ReferenceGrant, metadata: {name: ${name}, namespace: ${target.namespace}}, spec: {from: [${source}], to: [${to}]}}`;
}

export function suggestKind({ kind }: ObjectId, kinds: readonly string[]): string {
  const same = kinds.map(split).find((each) => each.kind === kind);
  if (same !== undefined) return `set group: ${JSON.stringify(same.group)}`;
  const near = closest(
    kind,
    kinds.map((groupKind) => split(groupKind).kind),
  );
  if (near !== undefined) return `did you mean \`${near}\`?`;
  return `it takes ${kinds.map((groupKind) => split(groupKind).kind).join(", ")}`;
}

/** Suggests the nearest of some names, or lists them. @param what names the group of names, such as "listeners" */
export function suggestName(wanted: string, names: readonly string[], what: string, owner: KubeObject): string {
  const near = closest(wanted, names);
  if (near !== undefined) return `did you mean \`${near}\`?`;
  const { kind, namespace, name } = objectId(owner);
  const text = describeRef({ kind, namespace, name });
  return names.length === 0 ? `${text} has no ${what}` : `${text} has the ${what} ${listNames(names)}`;
}

function listNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  return more > 0 ? `${names.slice(0, MAX_NAMES).join(", ")} and ${more} more` : names.join(", ");
}

function split(groupKind: string): { readonly group: string; readonly kind: string } {
  const slash = groupKind.lastIndexOf("/");
  return { group: groupKind.slice(0, slash), kind: groupKind.slice(slash + 1) };
}

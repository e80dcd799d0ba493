/**
 * Applies a strategic merge patch, the patch format of `kubectl patch --type=strategic`
 * (https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/). The deployer merges
 * overlays with it. Both arguments stay unchanged. The patch has to be without errors (`check.ts`).
 *
 * Maps are merged by member, `null` deletes a member, and lists are merged by their merge key or replaced. Where the
 * API server keeps a directive or `null` inside of a new value and drops it when it decodes the object, it is left out
 * here, because server-side apply would refuse it.
 */
import { isRecord } from "../is-record.ts";
import { mergeList, orderItems, removeScalars } from "./merge-lists.ts";
import {
  DELETE_SCALARS,
  ELEMENT_ORDER,
  isListType,
  type JsonMap,
  membersOf,
  type MergeType,
  type MergeTypes,
  PATCH,
  RETAIN_KEYS,
} from "./merge-types.ts";

/** @param type type of the object; a member whose type is not known is merged as a map or replaced */
export function mergePatch(original: JsonMap, patch: JsonMap, type: MergeType | undefined, types: MergeTypes): JsonMap {
  if (patch[PATCH] === "delete") return {};
  if (patch[PATCH] === "replace") return stripMembers(patch);
  // A Map, because a member may have any name, "__proto__" too.
  const merged = new Map(Object.entries(retainMembers(original, patch[RETAIN_KEYS])));
  for (const [name, list] of directives(patch, DELETE_SCALARS)) {
    const known = merged.get(name);
    if (Array.isArray(known)) merged.set(name, removeScalars(known, list));
  }
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$")) continue;
    const member = mergeValue(merged.get(name), value, membersOf(type, types, name), types);
    if (member === undefined) merged.delete(name);
    else merged.set(name, member);
  }
  for (const [name, order] of directives(patch, ELEMENT_ORDER)) {
    const memberType = membersOf(type, types, name);
    const known = merged.get(name);
    if (!Array.isArray(known)) continue;
    const before = original[name];
    const key = isListType(memberType) ? memberType.key : undefined;
    merged.set(name, orderItems(known, order, Array.isArray(before) ? before : [], key));
  }
  return Object.fromEntries(merged);
}

/** @returns undefined when the member is deleted */
function mergeValue(original: unknown, patch: unknown, type: MergeType | undefined, types: MergeTypes): unknown {
  if (patch === null) return undefined;
  if (isRecord(patch) && isRecord(original)) {
    const isReplaced = typeof type === "object" && "object" in type && type.replace === true;
    return isReplaced ? stripMembers(patch) : mergePatch(original, patch, type, types);
  }
  if (Array.isArray(patch) && Array.isArray(original) && isListType(type) && (type.key !== undefined || type.isSet))
    return mergeList(original, patch, type.key, {
      merge: (item, change) => mergePatch(item, change, type.list, types),
      strip: stripDirectives,
    });
  if (Array.isArray(patch) && Array.isArray(original)) return stripDirectives(patch);
  return takeValue(patch);
}

/** Returns a member that is new as it is stored: maps with a directive are left out. */
function takeValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(takeValue).filter((item) => item !== undefined);
  if (!isRecord(value)) return value;
  if (Object.hasOwn(value, PATCH)) return undefined;
  return mapMembers(value, takeValue);
}

/**
 * Returns a value that replaces another, or is a new item of a list, as it is stored: a directive in it has nothing to
 * act on, and the rest of its map counts.
 */
function stripDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(stripDirectives);
  return isRecord(value) ? stripMembers(value) : value;
}

function stripMembers(map: JsonMap): JsonMap {
  return mapMembers(map, stripDirectives);
}

/** Maps the members that are stored: neither directives nor `null`. */
function mapMembers(map: JsonMap, change: (value: unknown) => unknown): JsonMap {
  const members = Object.entries(map).flatMap(([name, value]) => {
    if (name.startsWith("$") || value === null) return [];
    const changed = change(value);
    return changed === undefined ? [] : [[name, changed] as const];
  });
  return Object.fromEntries(members);
}

function retainMembers(original: JsonMap, retained: unknown): JsonMap {
  if (!Array.isArray(retained)) return original;
  return Object.fromEntries(Object.entries(original).filter(([name]) => retained.includes(name)));
}

/** Returns the lists of a directive by the name of the member that they are about. */
function directives(patch: JsonMap, prefix: string): (readonly [string, readonly unknown[]])[] {
  return Object.entries(patch).flatMap(([name, value]) =>
    name.startsWith(prefix) && Array.isArray(value) ? [[name.slice(prefix.length), value] as const] : [],
  );
}

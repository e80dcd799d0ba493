/**
 * Describes how the members of an object are merged: the part of a Kubernetes type that a strategic merge patch needs.
 * `merge.ts` and `check.ts` use it. The table of the types is generated (`generated/overlay-types.ts`).
 */

export type MergeType =
  | "string"
  | "integer"
  | "boolean"
  /** A number with a unit, such as "128Mi"; a bare number is accepted too. */
  | "quantity"
  /** A number, or a text such as "50%". */
  | "integer-or-string"
  | {
      /** Name of the type in the table. */
      readonly object: string;
      /** The patch replaces the whole object instead of being merged into it. */
      readonly replace?: true;
    }
  | { readonly map: MergeType }
  | {
      readonly list: MergeType;
      /** Member that identifies an item. Lists of objects without one are replaced as a whole. */
      readonly key?: string;
      /** The list holds scalars and is merged as a set. */
      readonly isSet?: true;
    };

export type ListType = Extract<MergeType, { readonly list: MergeType }>;

/** Types by name, with the types of their members. */
export type MergeTypes = Readonly<Record<string, Readonly<Record<string, MergeType>>>>;

export type JsonMap = Readonly<Record<string, unknown>>;

/** Directives of a strategic merge patch; the last two are prefixes in front of the name of a list. */
export const PATCH = "$patch";
export const RETAIN_KEYS = "$retainKeys";
export const ELEMENT_ORDER = "$setElementOrder/";
export const DELETE_SCALARS = "$deleteFromPrimitiveList/";

export function isListType(type: MergeType | undefined): type is ListType {
  return typeof type === "object" && "list" in type;
}

/** Returns the types of the members of an object; undefined when they are not known. */
export function membersOf(type: MergeType | undefined, types: MergeTypes, member: string): MergeType | undefined {
  if (typeof type !== "object") return undefined;
  if ("map" in type) return type.map;
  if (!("object" in type)) return undefined;
  const members = types[type.object] ?? {};
  return Object.hasOwn(members, member) ? members[member] : undefined;
}

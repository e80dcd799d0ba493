/**
 * Finds the errors of a strategic merge patch before it is applied: values of the wrong type, items without their merge
 * key, and directives that are unknown or contradict the patch. The translator checks overlays with it. A patch without
 * errors can be applied to any object of its type (`merge.ts`). Members that the types do not know are left to the API
 * server, which may be newer.
 */
import { isRecord } from "../is-record.ts";
import {
  DELETE_SCALARS,
  ELEMENT_ORDER,
  isListType,
  type JsonMap,
  type ListType,
  membersOf,
  type MergeType,
  type MergeTypes,
  PATCH,
  RETAIN_KEYS,
} from "./merge-types.ts";

export interface PatchError {
  /** Path below the patch, such as "template.spec.containers[0].image". */
  readonly path: string;
  /** A sentence part such as "must be a number". */
  readonly message: string;
}

/** No Kubernetes object nests so deeply; the bound protects the stack. */
const MAX_DEPTH = 64;
/** Bounds what a patch that is wrong everywhere can add to a status. */
const MAX_ERRORS = 20;

interface KeyedList {
  /** The merge key. */
  readonly key: string;
  /** Type of the items. */
  readonly list: MergeType;
}

interface ListDirective {
  /** Value of the directive. */
  readonly list: unknown;
  /** Value that the patch gives to the list which the directive is about, and the type of that list. */
  readonly member: unknown;
  readonly type: MergeType | undefined;
}

export function findPatchErrors(patch: unknown, type: MergeType, types: MergeTypes): readonly PatchError[] {
  const check = new PatchCheck(types);
  check.value(patch, type, "", 0);
  return check.errors;
}

class PatchCheck {
  readonly errors: PatchError[] = [];
  readonly #types: MergeTypes;

  constructor(types: MergeTypes) {
    this.#types = types;
  }

  value(value: unknown, type: MergeType | undefined, path: string, depth: number): void {
    if (value === null || this.errors.length >= MAX_ERRORS) return;
    if (depth > MAX_DEPTH) return this.#report(path, "is nested too deeply");
    const wrong = type === undefined ? undefined : typeError(value, type);
    if (wrong !== undefined) return this.#report(path, wrong);
    if (isRecord(value)) this.#map(value, type, path, depth);
    if (Array.isArray(value)) this.#list(value, isListType(type) ? type : undefined, path, depth);
  }

  #report(path: string, message: string): void {
    this.errors.push({ path, message });
  }

  #map(map: JsonMap, type: MergeType | undefined, path: string, depth: number): void {
    for (const [name, value] of Object.entries(map)) {
      const at = path === "" ? name : `${path}.${name}`;
      if (name.startsWith("$")) this.#directive(map, name, type, at);
      else this.value(value, membersOf(type, this.#types, name), at, depth + 1);
    }
  }

  #directive(map: JsonMap, name: string, type: MergeType | undefined, path: string): void {
    const value = map[name];
    const prefix = [ELEMENT_ORDER, DELETE_SCALARS].find((each) => name.startsWith(each));
    if (prefix !== undefined) {
      const member = name.slice(prefix.length);
      const listed = { list: value, member: map[member], type: membersOf(type, this.#types, member) };
      return this.#listDirective(prefix, listed, path);
    }
    if (name === RETAIN_KEYS) return this.#retainKeys(map, value, path);
    if (name !== PATCH) {
      const known = [PATCH, RETAIN_KEYS, `${ELEMENT_ORDER}LIST`, `${DELETE_SCALARS}LIST`].join(", ");
      return this.#report(path, `is not a directive of a strategic merge patch; these are ${known}`);
    }
    if (value !== "delete" && value !== "replace") this.#report(path, 'must be "delete" or "replace"');
  }

  #retainKeys(map: JsonMap, value: unknown, path: string): void {
    if (!Array.isArray(value) || !value.every((each) => typeof each === "string"))
      return this.#report(path, "must be a list of member names");
    const missing = Object.entries(map).find(
      ([name, member]) => member !== null && !name.startsWith("$") && !value.includes(name),
    );
    if (missing !== undefined) this.#report(path, `must name "${missing[0]}" too, because the patch sets it`);
  }

  #listDirective(prefix: string, { list, member, type }: ListDirective, path: string): void {
    if (!Array.isArray(list)) return this.#report(path, "must be a list");
    if (type !== undefined && !isListType(type)) return this.#report(path, "is about a member that is not a list");
    if (prefix === DELETE_SCALARS) {
      const hasScalars = list.every((item) => typeof item === "string" || typeof item === "number");
      if (!hasScalars || type?.key !== undefined) this.#report(path, "must be a list of texts or numbers to remove");
      return;
    }
    this.#elementOrder(member, list, type?.key, path);
  }

  /** The items that the patch sets must stand in the order list, in the same order. */
  #elementOrder(patch: unknown, order: readonly unknown[], key: string | undefined, path: string): void {
    const hasKeys = key === undefined || order.every((item) => isRecord(item) && isScalar(item[key]));
    if (!hasKeys) return this.#report(path, `must be a list of items with "${key}", the merge key of the list`);
    const identify = (item: unknown): unknown => (key !== undefined && isRecord(item) ? item[key] : item);
    const places = new Map(order.map((item, at) => [identify(item), at]));
    const items = (Array.isArray(patch) ? patch : []).filter((item) => !(isRecord(item) && Object.hasOwn(item, PATCH)));
    let last = -1;
    for (const item of items) {
      const place = places.get(identify(item)) ?? -1;
      if (place < last || place < 0) return this.#report(path, "must hold every item of the patch, in the same order");
      last = place;
    }
  }

  #list(list: readonly unknown[], type: ListType | undefined, path: string, depth: number): void {
    for (const [at, item] of list.entries()) {
      const place = `${path}[${at}]`;
      if (item === null) this.#report(place, "must not be null");
      else if (type?.key === undefined) this.#unkeyedItem(item, type, place, depth);
      else this.#keyedItem(item, { key: type.key, list: type.list }, place, depth);
    }
  }

  /** Lists without a merge key are replaced as a whole, so that no directive can have an effect in them. */
  #unkeyedItem(item: unknown, type: ListType | undefined, path: string, depth: number): void {
    if (isRecord(item) && Object.hasOwn(item, PATCH))
      return this.#report(
        `${path}.${PATCH}`,
        "has no effect in a list without a merge key, which is replaced as a whole",
      );
    this.value(item, type?.list, path, depth + 1);
  }

  #keyedItem(item: unknown, { key, list }: KeyedList, path: string, depth: number): void {
    const directive = isRecord(item) ? item[PATCH] : undefined;
    if (directive !== "replace" && isRecord(item) && !isScalar(item[key]))
      return this.#report(path, `needs "${key}", the merge key of the list`);
    this.value(item, list, path, depth + 1);
  }
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number";
}

/** Returns what the value must be, or undefined when it has the type. */
function typeError(value: unknown, type: MergeType): string | undefined {
  if (typeof type === "object") {
    if ("list" in type) return Array.isArray(value) ? undefined : "must be a list";
    return isRecord(value) ? undefined : "must be an object";
  }
  switch (type) {
    case "string":
      return typeof value === "string" ? undefined : "must be a string";
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "integer":
      if (typeof value !== "number") return "must be a number";
      return Number.isInteger(value) ? undefined : "must be a whole number";
    case "integer-or-string":
    case "quantity":
      return isScalar(value) ? undefined : "must be a number or a string";
  }
}

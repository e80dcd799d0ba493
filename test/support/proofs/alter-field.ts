/**
 * Removes one field of an object or gives it another value. `startGateway` uses it for the counter-proofs of prove.ts.
 */
import type { KubeObject } from "../../../src/api/object.ts";

/** Returns the replacement of a value; undefined removes the field. */
export type ChangeValue = (value: unknown) => unknown;

/**
 * @param field path with every list on its way, such as "GwPolicy spec.targetRefs[].name"; all occurrences are altered
 */
export function alterField(object: KubeObject, field: string, change: ChangeValue): KubeObject {
  const [kind, path] = field.split(" ");
  if (object.kind !== kind || path === undefined) return object;
  const copy = structuredClone(object);
  alterAt(copy, path.split("."), change);
  return copy;
}

function alterAt(value: unknown, path: readonly string[], change: ChangeValue): void {
  const [head, ...rest] = path;
  if (head === undefined || value === null || typeof value !== "object") return;
  const name = head.replace(/(\[\])+$/, "");
  const holder = value as Record<string, unknown>; // any member name is allowed; a list has none of these names
  const child = holder[name];
  if (rest.length > 0) {
    for (const each of Array.isArray(child) ? child.flat() : [child]) alterAt(each, rest, change);
    return;
  }
  if (child === undefined) return;
  const items = Array.isArray(child) ? child.map(change).filter((item) => item !== undefined) : [];
  const altered = Array.isArray(child) ? (items.length > 0 ? items : undefined) : change(child);
  if (altered === undefined) delete holder[name];
  else holder[name] = altered;
}

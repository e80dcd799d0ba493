/** Removes one field of one kind, everywhere it occurs in an object: "GwPolicy spec.targetRefs[].name". */
import type { KubeObject } from "../../src/api/object.ts";

export function dropField(object: KubeObject, field: string): KubeObject {
  const [kind, path] = field.split(" ");
  if (object.kind !== kind || path === undefined) return object;
  const copy = structuredClone(object);
  removeAt(copy, path.split("."));
  return copy;
}

function removeAt(value: unknown, path: readonly string[]): void {
  const [head, ...rest] = path;
  if (head === undefined || value === null || typeof value !== "object") return;
  const name = head.replace(/(\[\])+$/, "");
  const holder = value as Record<string, unknown>;
  if (rest.length === 0) {
    delete holder[name];
    return;
  }
  const child = holder[name];
  for (const each of Array.isArray(child) ? child.flat() : [child]) removeAt(each, rest);
}

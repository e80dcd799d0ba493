/**
 * Expands components into the single tree of a CRD: it replaces references, lowers keywords and copies rules. The CRD
 * emitter and the baseline use it.
 */
import type { SchemaGraph } from "./graph.ts";
import { lowered } from "./lower.ts";
import { compare } from "./print.ts";
import { isStruct, type Schema } from "./schema.ts";

export function expand(graph: SchemaGraph, schema: Schema): Schema {
  const resolved = lowered(graph.resolve(schema));
  const result: Schema = { ...resolved };
  // Remove empty properties: the API server would not store them, and every apply would show a change.
  if (isStruct(resolved) && Object.keys(resolved.properties ?? {}).length === 0) delete result.properties;
  else if (resolved.properties !== undefined) {
    result.properties = Object.fromEntries(
      Object.entries(resolved.properties).map(([name, child]) => [name, expand(graph, child)]),
    );
  }
  if (resolved.items !== undefined) result.items = expand(graph, resolved.items);
  if (typeof resolved.additionalProperties === "object") {
    result.additionalProperties = expand(graph, resolved.additionalProperties);
  }
  return result;
}

/** Sorts keywords and fields alphabetically, so that a diff of two CRDs shows only changes of meaning. */
export function sorted(schema: Schema): Schema {
  const byName = <Value>(entries: [string, Value][]): [string, Value][] => entries.sort(([a], [b]) => compare(a, b));
  const copy: Schema = Object.fromEntries(byName(Object.entries(schema)));
  if (schema.properties !== undefined) {
    const children = Object.entries(schema.properties).map(([name, child]): [string, Schema] => [name, sorted(child)]);
    copy.properties = Object.fromEntries(byName(children));
  }
  if (schema.items !== undefined) copy.items = sorted(schema.items);
  if (typeof schema.additionalProperties === "object") copy.additionalProperties = sorted(schema.additionalProperties);
  if (schema.required !== undefined) copy.required = [...schema.required].sort(compare);
  return copy;
}

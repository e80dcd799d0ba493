/**
 * Restores names in a structural CRD, which is one tree without references: equal object shapes are folded into one
 * component, named by the shortest path that is unique among the shapes of the kind. Descriptions and defaults of a use
 * stay at the use, so that expanding the components again yields the original schema, key by key. The generator uses it
 * for the Gateway API, and `gwproxy generate types` for any CRD.
 */
import { stableText } from "./print.ts";
import { isStruct, mapSchema, type Component, type Schema } from "./schema.ts";

interface Shape {
  readonly schema: Schema;
  /** Field names from the root to the first use. */
  readonly path: readonly string[];
}

/**
 * Folds one version of a kind into components.
 *
 * @param root schema of the version; `metadata` becomes a reference to ObjectMeta
 * @param names chosen names by path, such as "spec.rules", so that an upstream update does not rename a type
 */
export function refold(kind: string, file: string, root: Schema, names: Readonly<Record<string, string>>): Component[] {
  const shapes = new Map<string, Shape>();
  const fold = (schema: Schema, path: readonly string[]): Schema => {
    const inner: Schema = { ...schema };
    if (schema.properties !== undefined) {
      inner.properties = Object.fromEntries(
        Object.entries(schema.properties).map(([name, child]) => [name, fold(child, [...path, name])]),
      );
    }
    if (schema.items !== undefined) inner.items = fold(schema.items, path);
    if (typeof schema.additionalProperties === "object") {
      inner.additionalProperties = fold(schema.additionalProperties, path);
    }
    if (!isStruct(inner) || path.length === 0) return inner;
    const { description, default: fallback, "x-gw-null": nullable, ...shape } = inner;
    const key = stableText(shape);
    const known = shapes.get(key);
    if (known === undefined || path.length < known.path.length) shapes.set(key, { schema: shape, path });
    return {
      $ref: key,
      ...(description === undefined ? {} : { description }),
      ...(fallback === undefined ? {} : { default: fallback }),
      ...(nullable === undefined ? {} : { "x-gw-null": nullable }),
    };
  };
  const folded = fold(root, []);
  const named = nameShapes(kind, shapes, names);
  const rename = (schema: Schema): Schema =>
    mapSchema(schema, (part) =>
      part.$ref === undefined ? part : { ...part, $ref: named.get(part.$ref) ?? part.$ref },
    );
  return [
    { name: kind, file, schema: withMetadata(rename(folded)) },
    ...[...shapes].map(([key, { schema }]) => ({ name: named.get(key) ?? key, file, schema: rename(schema) })),
  ];
}

function withMetadata(root: Schema): Schema {
  if (root.properties?.["metadata"] === undefined) return root;
  return { ...root, properties: { ...root.properties, metadata: { $ref: "ObjectMeta" } } };
}

/** Names the shapes: first the chosen names, then ever longer suffixes of their paths, until each suffix is unique. */
function nameShapes(
  kind: string,
  shapes: ReadonlyMap<string, Shape>,
  chosen: Readonly<Record<string, string>>,
): Map<string, string> {
  const result = new Map<string, string>();
  const taken = new Set([kind]);
  const open = new Map<string, readonly string[]>();
  for (const [key, { path }] of shapes) {
    const name = chosen[path.join(".")];
    if (name === undefined) open.set(key, path);
    else {
      result.set(key, name);
      taken.add(name);
    }
  }
  for (let length = 1; open.size > 0; length++) {
    const candidates = new Map<string, string[]>();
    for (const [key, path] of open) {
      const name = kind + path.slice(-length).map(pascal).join("");
      candidates.set(name, [...(candidates.get(name) ?? []), key]);
    }
    for (const [name, keys] of candidates) {
      const [only] = keys;
      const last = only !== undefined && length >= (open.get(only)?.length ?? 0);
      if (keys.length > 1 || only === undefined || (taken.has(name) && !last)) continue;
      result.set(only, taken.has(name) ? `${name}Shape` : name);
      taken.add(name);
      open.delete(only);
    }
  }
  return result;
}

/** Converts a field name to a type name in the singular: "backendRefs" → "BackendRef". */
function pascal(field: string): string {
  const singular = /(?:ches|shes|sses|xes)$/.test(field)
    ? field.slice(0, -2)
    : /[^su]s$/.test(field) && !/(?:tls|cors|status)$/i.test(field)
      ? field.slice(0, -1)
      : field;
  return singular
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}

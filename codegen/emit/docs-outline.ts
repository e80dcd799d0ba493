/**
 * Computes the outline of a reference page for docs.ts: which components belong to which block of the spec, at which
 * paths each one is used, and which leaves of the object lie below each field.
 */
import type { SchemaGraph } from "../graph.ts";
import { isStruct, type Schema } from "../schema.ts";

/** One path at which a field can be written, and the leaves at or below it, in the notation of the field ledger. */
export interface Use {
  readonly path: string;
  readonly leaves: readonly string[];
}

export interface Outline {
  /** Blocks in the order of the spec; each component is in the first block that reaches it. */
  readonly groups: readonly { readonly title: string; readonly components: readonly string[] }[];
  readonly scalars: readonly string[];
  /** Paths at which each component is used, the shortest first. */
  readonly places: ReadonlyMap<string, readonly string[]>;
  /** Uses by "Component.field". */
  readonly uses: ReadonlyMap<string, readonly Use[]>;
  /** Components that only a controller writes. */
  readonly isStatus: ReadonlySet<string>;
}

export function outline(graph: SchemaGraph, root: string): Outline {
  const places = new Map<string, string[]>();
  const uses = new Map<string, Use[]>();
  walk(graph, { schema: { $ref: root }, path: "" }, { places, uses });
  const groupOf = new Map<string, string>();
  const scalars: string[] = [];
  for (const { name, schema } of graph.reachable(root)) {
    const [first = ""] = places.get(name) ?? [];
    if (!isStruct(schema)) scalars.push(name);
    else groupOf.set(name, name === root ? "Object" : titleOf(first));
  }
  const titles = [...new Set(groupOf.values())].sort((a, b) => rank(a) - rank(b));
  const isStatus = new Set(
    [...places].filter(([, at]) => at.every((path) => path.startsWith("status"))).map(([name]) => name),
  );
  return {
    groups: titles.map((title) => ({
      title,
      components: [...groupOf].filter(([, group]) => group === title).map(([name]) => name),
    })),
    scalars: scalars.sort(),
    places: new Map([...places].map(([name, at]) => [name, [...at].sort((a, b) => depth(a) - depth(b))])),
    uses,
    isStatus,
  };
}

interface Site {
  readonly schema: Schema;
  readonly path: string;
}

interface Found {
  readonly places: Map<string, string[]>;
  readonly uses: Map<string, Use[]>;
}

/**
 * @returns the leaves below the site in the notation of the field ledger: "[]" for items, nothing for the values of a
 * map
 */
function walk(graph: SchemaGraph, { schema, path }: Site, found: Found): string[] {
  if (schema.$ref !== undefined && path !== "") add(found.places, schema.$ref, path);
  const resolved = graph.resolve(schema);
  if (resolved.items !== undefined) return walk(graph, { schema: resolved.items, path: `${path}[]` }, found);
  if (typeof resolved.additionalProperties === "object") {
    // Walk the values to record what is used there; the field ledger treats the map as one leaf.
    walk(graph, { schema: resolved.additionalProperties, path: `${path}{}` }, found);
    return [path];
  }
  const leaves: string[] = [];
  for (const [name, child] of Object.entries(resolved.properties ?? {})) {
    const at = path === "" ? name : `${path}.${name}`;
    const below = walk(graph, { schema: child, path: at }, found);
    if (schema.$ref !== undefined) add(found.uses, `${schema.$ref}.${name}`, { path: at, leaves: below });
    leaves.push(...below);
  }
  return leaves.length > 0 ? leaves : [path];
}

function add<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** Returns the block of a path: "spec.traffic.timeouts" → "spec.traffic". Fields directly below spec have no block. */
function titleOf(path: string): string {
  const [top = "", block] = path.split(/[.[\]{}]+/);
  return top !== "spec" || block === undefined || block === ""
    ? top === "status"
      ? "status"
      : "Object"
    : `spec.${block}`;
}

function rank(title: string): number {
  return title === "Object" ? 0 : title === "status" ? 2 : 1;
}

function depth(path: string): number {
  return path.split(".").length * 1000 + path.length;
}

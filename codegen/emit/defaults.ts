/** Writes defaults.ts, which fills in defaults before validation, as the API server does. */
import type { SchemaGraph } from "../graph.ts";
import { header, literal } from "../print.ts";
import { isStruct, type Schema } from "../schema.ts";

/** @param roots component of each root object by "group/Kind" */
export function emitDefaults(graph: SchemaGraph, roots: ReadonlyMap<string, string>): string {
  const written = new Map<string, string>();
  const none = new Set<string>();
  const nodeOf = (schema: Schema, component?: string): string | undefined => {
    if (schema.$ref !== undefined) return componentNode(schema.$ref);
    const members: string[] = [];
    if (component !== undefined && isStruct(schema)) members.push(`names: FIELDS[${JSON.stringify(component)}]`);
    const nullable = Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
      graph.resolve(child).nullable === true ? [name] : [],
    );
    if (nullable.length > 0) members.push(`nullable: ${literal(nullable, 0)}`);
    const set = Object.entries(schema.properties ?? {}).flatMap(([name, child]): [string, unknown][] => {
      const value = child.default ?? graph.resolve(child).default;
      return value === undefined ? [] : [[name, value]];
    });
    if (set.length > 0) members.push(`set: ${literal(Object.fromEntries(set), 0)}`);
    const fields = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
      const node = nodeOf(child);
      return node === undefined ? [] : [`${JSON.stringify(name)}: ${node}`];
    });
    if (fields.length > 0) members.push(`fields: { ${fields.join(", ")} }`);
    const items = schema.items === undefined ? undefined : nodeOf(schema.items);
    if (items !== undefined) members.push(`items: ${items}`);
    if (typeof schema.additionalProperties === "object") {
      const values = nodeOf(schema.additionalProperties);
      // A node without defaults still matters here: it tells that a null value of the map is dropped.
      if (values !== undefined || graph.resolve(schema.additionalProperties).nullable !== true)
        members.push(`values: ${values ?? "{}"}`);
    }
    return members.length === 0 ? undefined : `{ ${members.join(", ")} }`;
  };
  const componentNode = (name: string): string | undefined => {
    if (written.has(name)) return name;
    if (none.has(name)) return undefined;
    const node = nodeOf(graph.get(name).schema, name);
    if (node === undefined) none.add(name);
    else written.set(name, node);
    return node === undefined ? undefined : name;
  };
  const table = [...roots].flatMap(([key, component]) => {
    const node = componentNode(component);
    return node === undefined ? [] : [`  ${JSON.stringify(key)}: ${node},\n`];
  });
  const nodes = [...written].map(([name, node]) => `const ${name}: DefaultNode = ${node};\n`);
  return `${header("//", "crds/schemas")}${TYPES}\n${nodes.join("")}
const DEFAULTS: Readonly<Record<string, DefaultNode>> = {
${table.join("")}};
${CODE}`;
}

const TYPES = `
import { FIELDS } from "./fields.ts";

interface DefaultNode {
  /** Known fields; null in one of them counts as missing. */
  readonly names?: readonly string[] | undefined;
  /** Fields that accept null as a value. */
  readonly nullable?: readonly string[];
  /** Defaults of missing fields. */
  readonly set?: Readonly<Record<string, unknown>>;
  readonly fields?: Readonly<Record<string, DefaultNode>>;
  readonly items?: DefaultNode;
  readonly values?: DefaultNode;
}
`;

const CODE = `
/**
 * @param groupKind "gwproxy.dev/GwPolicy"
 * @returns the object with its defaults; the same object when nothing is missing or the kind is not known
 */
export function applyDefaults<T>(groupKind: string, object: T): T {
  const root = DEFAULTS[groupKind];
  // Filling members in keeps the type of the whole.
  return root === undefined ? object : (fill(root, object) as T);
}

function fill(node: DefaultNode, value: unknown): unknown {
  if (Array.isArray(value)) return fillList(node, value);
  if (typeof value !== "object" || value === null) return value;
  const members = new Map<string, unknown>(Object.entries(value));
  let isChanged = false;
  for (const [name, member] of members) {
    // The API server drops a null where it is not asked for, before it fills in defaults.
    if (member !== null || (node.names?.includes(name) !== true && node.values === undefined)) continue;
    if (node.nullable?.includes(name) === true) continue;
    members.delete(name);
    isChanged = true;
  }
  for (const [name, missing] of Object.entries(node.set ?? {})) {
    if (members.get(name) !== undefined) continue;
    members.set(name, missing);
    isChanged = true;
  }
  for (const [name, member] of members) {
    const child = (node.fields !== undefined && Object.hasOwn(node.fields, name) ? node.fields[name] : undefined) ?? node.values;
    if (child === undefined) continue;
    const filled = fill(child, member);
    if (filled === member) continue;
    members.set(name, filled);
    isChanged = true;
  }
  return isChanged ? Object.fromEntries(members) : value;
}

function fillList({ items }: DefaultNode, list: readonly unknown[]): readonly unknown[] {
  if (items === undefined) return list;
  const filled = list.map((item) => fill(items, item));
  return filled.some((item, at) => item !== list[at]) ? filled : list;
}
`;

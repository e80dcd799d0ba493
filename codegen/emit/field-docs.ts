/** Writes field-docs.ts: the descriptions of our kinds and their fields, for messages that explain a field. */
import type { SchemaGraph } from "../graph.ts";
import type { KindsFile } from "../load.ts";
import { header, literal } from "../print.ts";
import type { Component, Schema } from "../schema.ts";

interface ComponentDocs {
  readonly about: string;
  readonly fields?: Readonly<Record<string, { readonly about: string; readonly of?: string; readonly map?: boolean }>>;
}

export function emitFieldDocs(graph: SchemaGraph, { group, kinds }: KindsFile): string {
  const components = new Map<string, Component>();
  for (const { component } of kinds) for (const part of graph.reachable(component)) components.set(part.name, part);
  const docs = Object.fromEntries([...components].map(([name, { schema }]) => [name, docsOf(schema)]));
  const roots = Object.fromEntries(kinds.map(({ kind, component }) => [`${group}/${kind}`, component]));
  return `${header("//", "crds/schemas")}${TYPES}
/** The component of each whole object by "group/Kind". */
export const ROOTS: Readonly<Record<string, string>> = ${literal(roots)};

/** By component. */
export const COMPONENT_DOCS: Readonly<Record<string, ComponentDocs>> = ${literal(docs)};
`;
}

function docsOf(schema: Schema): ComponentDocs {
  const about = schema.description ?? "";
  if (schema.properties === undefined) return { about };
  const fields = Object.entries(schema.properties).map(([name, site]) => {
    const { of, map } = target(site);
    return [
      name,
      { about: site.description ?? "", ...(of === undefined ? {} : { of }), ...(map ? { map } : {}) },
    ] as const;
  });
  return { about, fields: Object.fromEntries(fields) };
}

/** Returns the component behind a field, through the lists and maps around it. */
function target(site: Schema): { readonly of: string | undefined; readonly map: boolean } {
  if (site.items !== undefined) return target(site.items);
  if (typeof site.additionalProperties === "object") return { of: target(site.additionalProperties).of, map: true };
  return { of: site.$ref, map: false };
}

const TYPES = `
export interface ComponentDocs {
  /** Description in the schema; "" when it has none. */
  readonly about: string;
  readonly fields?: Readonly<Record<string, FieldDocs>>;
}

export interface FieldDocs {
  readonly about: string;
  /** Component of the value, of the items of a list or of the values of a map. */
  readonly of?: string;
  readonly map?: boolean;
}
`;

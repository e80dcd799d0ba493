/**
 * Writes the tables of paths per kind, found by walking its components: references, expressions of users, formats,
 * fields that fail closed, reserved names and secrets. "*" in a path stands for each item of a list or each value of a
 * map.
 */
import { CEL_PHASES } from "../../src/cel/environments/phases.ts";
import type { SchemaGraph } from "../graph.ts";
import { header, literal } from "../print.ts";
import type { Schema } from "../schema.ts";
import { FORMATS as FORMAT_BOUNDS } from "../vocabulary.ts";

interface Place {
  readonly path: readonly string[];
  /** The schema of the component, overlaid with the schema of the use. */
  readonly schema: Schema;
  /**
   * CEL phase of the expressions here. The outermost schema with a phase determines it, so that one component can be
   * used in several phases; but an expression about a response stays in the response phase.
   */
  readonly cel: string | undefined;
}

/** @param roots component of each root object by "group/Kind" */
export function emitPaths(graph: SchemaGraph, roots: ReadonlyMap<string, string>): Map<string, string> {
  const table = <Row>(find: (place: Place) => Row | undefined): Record<string, readonly Row[]> =>
    Object.fromEntries(
      [...roots].flatMap(([key, component]) => {
        const all = [...places(graph, graph.get(component).schema, [])];
        // Skip status: a controller writes it, so users cannot make mistakes there.
        const rows = all.filter(({ path }) => path[0] !== "status").flatMap((place) => find(place) ?? []);
        return rows.length === 0 ? [] : [[key, rows] as const];
      }),
    );
  const references = table(({ path, schema }) => {
    const ref = schema["x-gw-ref"];
    return ref === undefined
      ? undefined
      : { path, kinds: ref.kinds, grant: ref.grant, selector: ref.selector === true };
  });
  const expressions = table(({ path, schema, cel }) => {
    if (schema["x-gw-cel"] === undefined || schema.type !== "string") return undefined;
    const or = schema["x-gw-cel-or"];
    const other = schema["x-gw-cel-if"];
    const exception = other === undefined ? {} : { unless: { fields: other.when, environment: other.phase } };
    return { path, environment: cel, ...(or === undefined ? {} : { or }), ...exception };
  });
  const formats = table(({ path, schema }) => {
    const format = schema["x-gw-format"];
    return format === undefined ? undefined : { path, format };
  });
  const reserved = table(({ path, schema }) => {
    const names = schema["x-gw-reserved"];
    return names === undefined ? undefined : { path, names };
  });
  const secrets = table(({ path, schema }) => (schema["x-gw-secret"] === true ? { path } : undefined));
  const failClosedFields = table(({ path, schema }) => (schema["x-gw-fail-closed"] === true ? { path } : undefined));
  const pathsOf = (rows: Readonly<Record<string, readonly { readonly path: readonly string[] }[]>>) =>
    Object.fromEntries(Object.entries(rows).map(([key, list]) => [key, list.map(({ path }) => path)]));
  const masked = { ...pathsOf(secrets), ...CORE_SECRETS };
  const head = header("//", "crds/schemas");
  return new Map([
    ["refs.ts", `${head}${REFS}${literal(references, 2)};\n`],
    ["expressions.ts", `${head}${EXPRESSIONS}${literal(expressions, 2)};\n`],
    ["formats.ts", `${head}${FORMATS}${literal(formats, 2)};\n`],
    ["fail-closed-fields.ts", `${head}${FAIL_CLOSED_FIELDS}${literal(pathsOf(failClosedFields), 2)};\n`],
    ["reserved.ts", `${head}${RESERVED}${literal(reserved, 2)};\n`],
    ["secrets.ts", `${head}${SECRETS}${literal(masked, 2)};\n`],
  ]);
}

/** Writes the field names of each component, for "did you mean" suggestions. */
export function emitFields(graph: SchemaGraph, objects: ReadonlySet<string>): string {
  const fields = [...graph.components.values()].flatMap(({ name, schema }) => {
    if (schema.properties === undefined) return [];
    const own = Object.keys(schema.properties);
    return [[name, objects.has(name) ? [...new Set(["apiVersion", "kind", "metadata", ...own])] : own] as const];
  });
  return `${header("//", "crds/schemas")}
/** By component: the names that its fields have. */
export const FIELDS: Readonly<Record<string, readonly string[]>> = ${literal(Object.fromEntries(fields))};
`;
}

/** Paths of secrets in kinds whose schema is not ours. */
const CORE_SECRETS = {
  "/Secret": [
    ["data", "*"],
    ["stringData", "*"],
  ],
};

function* places(graph: SchemaGraph, site: Schema, path: readonly string[], outer?: string): Generator<Place> {
  const schema = graph.resolve(site);
  const own = schema["x-gw-cel"];
  // An expression about the response runs after it in every use of the component.
  const cel = outer === undefined || own === "response" ? (own ?? outer) : outer;
  yield { path, schema, cel };
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield* places(graph, child, [...path, name], cel);
  }
  if (schema.items !== undefined) yield* places(graph, schema.items, [...path, "*"], cel);
  if (typeof schema.additionalProperties === "object") {
    yield* places(graph, schema.additionalProperties, [...path, "*"], cel);
  }
}

const REFS = `
export interface ObjectReference {
  /** Names of fields; "*" is each item or value. */
  readonly path: readonly string[];
  /** "group/Kind" of the objects that the reference accepts. */
  readonly kinds: readonly string[];
  /** True when the reference may name another namespace, which needs a ReferenceGrant. */
  readonly grant: boolean;
  /** True when the reference selects objects by labels. */
  readonly selector: boolean;
}

/** By "group/Kind": every field that refers to other objects. */
export const REFS: Readonly<Record<string, readonly ObjectReference[]>> = `;

const EXPRESSIONS = `
type CelPhase = ${CEL_PHASES.map((place) => JSON.stringify(place)).join(" | ")};

export interface ExpressionPlace {
  /** Names of fields; "*" is each item or value. */
  readonly path: readonly string[];
  /** Phase whose variables the expression can read. */
  readonly environment: CelPhase;
  /** A text in this format is a literal value and not an expression. */
  readonly or?: "duration";
  /** Phase that applies instead when the sibling fields have these values. */
  readonly unless?: { readonly fields: Readonly<Record<string, string>>; readonly environment: CelPhase };
}

/** By "group/Kind": every field that holds an expression. */
export const EXPRESSIONS: Readonly<Record<string, readonly ExpressionPlace[]>> = `;

const FORMATS = `
export interface FormatPlace {
  /** Names of fields; "*" is each item or value. */
  readonly path: readonly string[];
  readonly format: ${Object.keys(FORMAT_BOUNDS)
    .map((name) => JSON.stringify(name))
    .join(" | ")};
}

/** By "group/Kind": every field whose format restricts it beyond its pattern. */
export const FORMATS: Readonly<Record<string, readonly FormatPlace[]>> = `;

const FAIL_CLOSED_FIELDS = `
/** By "group/Kind": paths of settings that fail closed: without them, traffic passes that the user meant to stop. */
export const FAIL_CLOSED_FIELDS: Readonly<Record<string, readonly (readonly string[])[]>> = `;

const RESERVED = `
export interface ReservedNames {
  /** Path of the map. */
  readonly path: readonly string[];
  readonly names: readonly string[];
}

/** By "group/Kind": maps with keys that the gateway sets itself. */
export const RESERVED: Readonly<Record<string, readonly ReservedNames[]>> = `;

const SECRETS = `
/** By "group/Kind": paths of values that must not appear in dumps, logs or errors; "*" is each item or value. */
export const SECRETS: Readonly<Record<string, readonly (readonly string[])[]>> = `;

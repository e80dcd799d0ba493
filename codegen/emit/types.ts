/**
 * Writes the TypeScript types: a read-only interface or alias for each component, with the descriptions of each use,
 * split by schema file. The generator uses it for our own kinds, and `gwproxy generate types` for foreign ones.
 * Structural schemas are so small a language that no library is needed to print them;
 * docs/adr/0003-generator-in-the-package.md says what two libraries cost.
 */
import { schemaError } from "../errors.ts";
import { referencesOf, type SchemaGraph } from "../graph.ts";
import { compare, header } from "../print.ts";
import { isAnything, isStruct, type Component, type Schema } from "../schema.ts";

/** Fields of every Kubernetes object, independent of its schema. */
const OBJECT_FIELDS: Readonly<Record<string, Schema>> = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: { $ref: "ObjectMeta" },
};

/**
 * @param roots names of the components that are root objects
 * @param place module of a schema file, such as "gateway-api/httproute" for "httproute"
 * @param head first lines of each file
 * @returns text by path below generated/types
 */
export function emitTypes(
  graph: SchemaGraph,
  roots: ReadonlySet<string>,
  place: (file: string) => string,
  head: string = header("//", "crds/schemas"),
): Map<string, string> {
  const components = [...graph.components.values()].map((component) =>
    roots.has(component.name) ? { ...component, schema: asObject(component.schema) } : component,
  );
  const declarations = new Map(components.map((component) => [component.name, declarationOf(component)]));
  const files = [...new Set(components.map(({ file }) => file))].sort(compare);
  const fileOf = new Map(components.map(({ name, file }) => [name, file]));
  return new Map(
    files.map((file) => {
      const own = components.filter((component) => component.file === file);
      const body = own.map(({ name }) => declarations.get(name) ?? "").sort(compareDeclarations);
      const text = [head, imports(own, fileOf, place), ...body].filter((part) => part !== "");
      return [`${place(file)}.ts`, `${text.join("\n")}`];
    }),
  );
}

/** Writes the entry of the published package, which exports every type. @param paths modules of types */
export function emitTypesIndex(paths: readonly string[]): string {
  const lines = paths.toSorted(compare).map((path) => `export type * from "./${path}";\n`);
  return `${header("//", "crds/schemas")}\n${lines.join("")}`;
}

export function asObject(schema: Schema): Schema {
  return {
    ...schema,
    required: [...new Set([...Object.keys(OBJECT_FIELDS), ...(schema.required ?? [])])],
    properties: { ...OBJECT_FIELDS, ...without(schema.properties ?? {}, Object.keys(OBJECT_FIELDS)) },
  };
}

function without(fields: Record<string, Schema>, names: readonly string[]): Record<string, Schema> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

function declarationOf({ name, schema, file }: Component): string {
  const head = comment(schema.description, undefined, "");
  if (schema["x-gw-null"] === true || isAnything(schema) || schema.type !== "object")
    return `${head}export type ${name} = ${typeOf(schema, file)};\n`;
  const { properties = {}, required = [] } = schema;
  const lines = Object.entries(properties).map(([field, child]) => {
    const mark = required.includes(field) ? "" : "?";
    return `${comment(child.description, child, "  ")}  readonly ${memberName(field)}${mark}: ${typeOf(child, file)};\n`;
  });
  const other = otherFields(schema);
  if (other !== undefined)
    lines.push(`  readonly [name: string]: ${other === true ? "unknown" : typeOf(other, file)};\n`);
  // An interface without members would accept any value.
  if (lines.length === 0) return `${head}export type ${name} = Readonly<Record<string, never>>;\n`;
  return `${head}export interface ${name} {\n${lines.join("")}}\n`;
}

/**
 * Returns the values of fields that are not named: true for any value, a schema, or undefined when there are no such
 * fields.
 */
function otherFields(schema: Schema): Schema | true | undefined {
  if (typeof schema.additionalProperties === "object") return schema.additionalProperties;
  if (isStruct(schema)) return undefined;
  return schema["x-kubernetes-preserve-unknown-fields"] === true || schema.additionalProperties === true
    ? true
    : undefined;
}

/** Returns the type of a use; a union is in parentheses. */
function typeOf(schema: Schema, file: string): string {
  if (schema["x-gw-null"] === true) {
    const { "x-gw-null": _, ...rest } = schema;
    return `(${withoutBrackets(typeOf(rest, file))} | null)`;
  }
  if (schema.$ref !== undefined) return schema.$ref;
  if (schema["x-kubernetes-int-or-string"] === true) return "(number | string)";
  if (isAnything(schema)) return "unknown";
  if (schema.enum !== undefined) return unionOf(schema.enum.map((value) => JSON.stringify(value)));
  switch (schema.type) {
    case "string":
    case "boolean":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return listOf(schema.items === undefined ? "unknown" : typeOf(schema.items, file));
    case "object":
      if (isStruct(schema)) throw schemaError(`${file}.yaml`, "a field", "its fields must be a component of their own");
      return mapOf(otherFields(schema) ?? true, file);
    default:
      return "unknown";
  }
}

function mapOf(values: Schema | true, file: string): string {
  return `Readonly<Record<string, ${values === true ? "unknown" : withoutBrackets(typeOf(values, file))}>>`;
}

function listOf(item: string): string {
  return `readonly ${item.startsWith("readonly ") ? `(${item})` : item}[]`;
}

function unionOf(types: readonly string[]): string {
  return types.length === 1 ? types.join("") : `(${types.join(" | ")})`;
}

function withoutBrackets(type: string): string {
  return type.startsWith("(") ? type.slice(1, -1) : type;
}

/** Quotes a name that is not an identifier. */
function memberName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function comment(description: string | undefined, field: Schema | undefined, indent: string): string {
  const fallback =
    field?.default !== undefined ? `\`${JSON.stringify(field.default)}\`` : field?.["x-gw-default"]?.replace(/\.$/, "");
  const text = [description, fallback === undefined ? undefined : `Default: ${fallback}.`]
    .filter((part) => part !== undefined && part !== "")
    .join("\n")
    .replaceAll("*/", "*\\/");
  if (text === "") return "";
  const lines = text.split("\n").map((line) => line.trimEnd());
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

function imports(
  own: readonly Component[],
  fileOf: ReadonlyMap<string, string>,
  place: (file: string) => string,
): string {
  const here = own[0]?.file ?? "";
  const foreign = new Map<string, Set<string>>();
  for (const name of own.flatMap(({ schema }) => referencesOf(schema))) {
    const file = fileOf.get(name) ?? here;
    if (file !== here) foreign.set(file, (foreign.get(file) ?? new Set()).add(name));
  }
  return [...foreign]
    .sort(([a], [b]) => compare(a, b))
    .map(([file, names]) => {
      const from = relative(place(here), place(file));
      return `import type { ${[...names].sort(compare).join(", ")} } from "${from}.ts";\n`;
    })
    .join("");
}

function relative(from: string, to: string): string {
  const up = from.split("/").length - 1;
  return up === 0 ? `./${to}` : `${"../".repeat(up)}${to}`;
}

function compareDeclarations(a: string, b: string): number {
  const name = (text: string): string => /export (?:interface|type) (\w+)/.exec(text)?.[1] ?? "";
  return compare(name(a), name(b));
}

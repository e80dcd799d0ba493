/**
 * Writes the TypeScript types: json-schema-to-typescript runs once over all components, then ts-morph puts the
 * descriptions of each use back, makes everything readonly and splits the result by schema file. libraries.md 3.3.
 */
import { compile, type JSONSchema } from "json-schema-to-typescript";
import { Node, Project, type SourceFile } from "ts-morph";
import { referencesOf, type SchemaGraph } from "../graph.ts";
import { compare, header } from "../print.ts";
import { isAnything, isStruct, type Component, type Schema } from "../schema.ts";

/** What every object of Kubernetes carries, whatever its schema demands. */
const OBJECT_FIELDS: Readonly<Record<string, Schema>> = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: { $ref: "ObjectMeta" },
};

/**
 * @param roots names of the components that are whole objects
 * @param place the module of a schema file, such as "gateway-api/httproute" for "httproute"
 * @param head first lines of each file
 * @returns text by path below generated/types
 */
export async function emitTypes(
  graph: SchemaGraph,
  roots: ReadonlySet<string>,
  place: (file: string) => string,
  head: string = header("//", "crds/schemas"),
): Promise<Map<string, string>> {
  const components = [...graph.components.values()].map((component) =>
    roots.has(component.name) ? { ...component, schema: asObject(component.schema) } : component,
  );
  const declarations = declare(await compileAll(components), components);
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

/** Two traps of json-schema-to-typescript are stepped around: siblings of `$ref`, and junctors. */
function plain(schema: Schema, alias: (name: string) => string): JSONSchema {
  if (schema["x-gw-null"] === true) {
    const { "x-gw-null": _, ...rest } = schema;
    return { anyOf: [plain(rest, alias), { type: "null" }] };
  }
  if (schema.$ref !== undefined) return { $ref: `#/definitions/${alias(schema.$ref)}` };
  if (schema["x-kubernetes-int-or-string"] === true) return { type: ["integer", "string"] };
  if (isAnything(schema)) return {};
  const copy: JSONSchema = {};
  // The vocabulary admits no other type names than those of JSON Schema.
  if (schema.type !== undefined) copy.type = schema.type as JSONSchema["type"] & string;
  if (schema.enum !== undefined) copy.enum = [...schema.enum] as NonNullable<JSONSchema["enum"]>;
  if (schema.items !== undefined) copy.items = plain(schema.items, alias);
  if (typeof schema.additionalProperties === "object")
    copy.additionalProperties = plain(schema.additionalProperties, alias);
  else if (isStruct(schema)) copy.additionalProperties = false;
  else if (schema["x-kubernetes-preserve-unknown-fields"] === true) copy.additionalProperties = true;
  if (schema.properties !== undefined) {
    copy.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => [name, plain(child, alias)]),
    );
    copy.required = [...(schema.required ?? [])];
  }
  return copy;
}

/** json-schema-to-typescript respells some names ("K8sThing"), so it is given plain ones that are put right afterwards. */
async function compileAll(components: readonly Component[]): Promise<SourceFile> {
  const numbers = new Map(components.map(({ name }, at) => [name, at]));
  const alias = (name: string): string => `GwShape${numbers.get(name) ?? ""}`;
  const root: JSONSchema = {
    title: "GeneratedRoot",
    type: "object",
    additionalProperties: false,
    definitions: Object.fromEntries(components.map(({ name, schema }) => [alias(name), plain(schema, alias)])),
  };
  const text = await compile(root, "GeneratedRoot", {
    additionalProperties: false,
    bannerComment: "",
    declareExternallyReferenced: true,
    enableConstEnums: false,
    format: false,
    ignoreMinAndMaxItems: true,
    unknownAny: true,
    unreachableDefinitions: true,
  });
  const named = text.replaceAll(/\bGwShape(\d+)\b/g, (_, at: string) => components[Number(at)]?.name ?? "");
  return new Project({ useInMemoryFileSystem: true }).createSourceFile("types.ts", named);
}

function declare(source: SourceFile, components: readonly Component[]): Map<string, string> {
  const result = new Map<string, string>();
  for (const { name, schema, file } of components) {
    const alias = source.getTypeAlias(name);
    const declared = source.getInterface(name);
    if (alias !== undefined) {
      alias.getJsDocs().forEach((doc) => doc.remove());
      const type = readonlyType(alias.getTypeNodeOrThrow().getText());
      result.set(name, `${comment(schema.description, undefined, "")}export type ${name} = ${type};\n`);
    } else if (declared !== undefined && declared.getMembers().length === 0) {
      // An interface without members would take anything.
      result.set(
        name,
        `${comment(schema.description, undefined, "")}export type ${name} = Readonly<Record<string, never>>;\n`,
      );
    } else if (declared !== undefined) {
      const lines: string[] = [];
      for (const member of declared.getMembers()) {
        if (Node.isIndexSignatureDeclaration(member)) {
          lines.push(`  readonly [name: string]: ${readonlyType(member.getReturnTypeNodeOrThrow().getText())};\n`);
        }
        if (!Node.isPropertySignature(member)) continue;
        const field = schema.properties?.[unquoted(member.getName())];
        const type = readonlyType(member.getTypeNodeOrThrow().getText());
        const mark = member.hasQuestionToken() ? "?" : "";
        lines.push(`${comment(field?.description, field, "  ")}  readonly ${member.getName()}${mark}: ${type};\n`);
      }
      result.set(name, `${comment(schema.description, undefined, "")}export interface ${name} {\n${lines.join("")}}\n`);
    } else {
      throw new Error(`${file}.yaml: ${name}: json-schema-to-typescript made no type of that name`);
    }
  }
  return result;
}

/** The name of a member as a schema has it: one that is no identifier stands in quotes. */
function unquoted(name: string): string {
  return name.startsWith('"') ? (JSON.parse(name) as string) : name;
}

/** "(A | B)[]" → "readonly (A | B)[]", "{[k: string]: X}" → "Readonly<Record<string, X>>". */
function readonlyType(text: string): string {
  if (text.startsWith("(") && text.endsWith(" | null)")) return `(${readonlyType(text.slice(1, -1))})`;
  if (text.endsWith(" | null")) return `${readonlyType(text.slice(0, -" | null".length))} | null`;
  const map = /^\{\s*\[k: string\]: ([\s\S]+?);?\s*\}$/.exec(text.trim());
  if (map?.[1] !== undefined) return `Readonly<Record<string, ${readonlyType(map[1])}>>`;
  if (!text.endsWith("[]")) return text;
  const item = text.slice(0, -2);
  const inner = item.startsWith("(") ? `(${readonlyType(item.slice(1, -1))})` : readonlyType(item);
  return `readonly ${inner.startsWith("readonly ") ? `(${inner})` : inner}[]`;
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

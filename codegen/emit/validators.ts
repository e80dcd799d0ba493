/**
 * Writes the validators: ajv stand-alone code over the components, with `$ref` kept so that each component becomes one
 * shared function. The output loads without ajv: functions that it would require at run time are imported from src/lib.
 */
import { Ajv, _, stringify, type Code, type KeywordCxt, type SchemaObject } from "ajv";
import names from "ajv/dist/compile/names.js";
import { strConcat } from "ajv/dist/compile/codegen/code.js";
import standaloneCode from "ajv/dist/standalone/index.js";
import { MAX_SCHEMA_ERRORS } from "../../src/admission/violation-list.ts";
import type { SchemaGraph } from "../graph.ts";
import { withFormat } from "../lower.ts";
import { compare, header } from "../print.ts";
import { isStruct, mapSchema, type Schema } from "../schema.ts";
import { asObject } from "./types.ts";

/** Formats that the API server checks, as bounds and patterns, so that the generated code needs no table of formats. */
const FORMAT_BOUNDS: Readonly<Record<string, Schema>> = {
  int32: {},
  int64: {},
  "date-time": { pattern: "^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?([Zz]|[+-]\\d\\d:\\d\\d)$" },
  ipv4: { pattern: "^((25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.|$)){4}$" },
  double: {},
  float: {},
  password: {},
  byte: { pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" },
  date: { pattern: "^\\d{4}-\\d\\d-\\d\\d$" },
  uuid: { pattern: "^[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}$" },
  ipv6: { pattern: "^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$" },
};

export const KNOWN_FORMATS: ReadonlySet<string> = new Set(Object.keys(FORMAT_BOUNDS));

/** Modules that the output of ajv may require, and their replacements in src/lib. */
const RUNTIME: Readonly<Record<string, { readonly name: string; readonly from: string }>> = {
  'require("ajv/dist/runtime/ucs2length").default': { name: "codePointLength", from: "code-point-length" },
  'require("list-errors").findListErrors': { name: "findListErrors", from: "list-errors" },
  'require("ajv/dist/runtime/equal").default': { name: "deepEqual", from: "deep-equal" },
};

/** Names of the modules in src/lib that validators may import. */
export const RUNTIME_FILES: readonly string[] = Object.values(RUNTIME).map(({ from }) => from);

/** @param roots component of each root object by "group/Kind" */
export function emitValidators(graph: SchemaGraph, roots: ReadonlyMap<string, string>): Map<string, string> {
  const { code, runtime } = compileValidators(graph, roots);
  const imports = runtime.map((from) => `import { ${nameIn(from)} } from "../../src/lib/${from}.ts";\n`).sort(compare);
  return new Map([
    ["index.js", header("//", "crds/schemas") + imports.join("") + code + table(roots)],
    ["index.d.ts", header("//", "crds/schemas") + DECLARATIONS],
  ]);
}

export interface CompiledValidators {
  /**
   * A module that exports `validate0`, `validate1`, … in the order of the roots, and calls the functions of `runtime`.
   */
  readonly code: string;
  /** Modules of src/lib that the code needs. */
  readonly runtime: readonly string[];
}

/**
 * Compiles validators.
 *
 * @param roots component of each root object by any name
 * @param objects components that get the fields of every object; those of the roots unless they have them already
 */
export function compileValidators(
  graph: SchemaGraph,
  roots: ReadonlyMap<string, string>,
  objects: ReadonlySet<string> = new Set(roots.values()),
): CompiledValidators {
  const definitions = Object.fromEntries(
    [...graph.components.values()].map(({ name, schema }) => {
      const narrowed = mapSchema(schema, (part) => withOwnBounds(graph, part));
      return [name, closed(name, objects.has(name) ? asObject(narrowed) : narrowed)];
    }),
  );
  const ajv = createAjv();
  ajv.addSchema({ $id: "components", definitions });
  const exported = new Map<string, string>();
  for (const [at, component] of [...roots.values()].entries()) {
    const id = `validate${at}`;
    ajv.addSchema({ $id: id, $ref: `components#/definitions/${component}` });
    exported.set(id, id);
  }
  // Node wraps the default export of a CommonJS module when an ES module imports it.
  const generate = standaloneCode as unknown as { default: (ajv: Ajv, refs: Record<string, string>) => string };
  return withoutRequire(generate.default(ajv, Object.fromEntries(exported)));
}

function createAjv(): Ajv {
  const ajv = new Ajv({
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    inlineRefs: false,
    unicodeRegExp: true,
    code: { source: true, esm: true, lines: false },
  });
  ajv.addKeyword({ keyword: "duplicate", type: "array", schemaType: "array", code: duplicateKeyword });
  ajv.addKeyword({ keyword: "int64", type: "number", schemaType: ["string", "array"], code: int64Keyword });
  ajv.addKeyword({ keyword: "closed", type: "object", schemaType: "object", code: closedKeyword });
  return ajv;
}

/**
 * Implements `additionalProperties: false`, with the component in `schemaPath`, from which admission suggests field
 * names.
 */
function closedKeyword({ gen, data, schema, it }: KeywordCxt): void {
  // `closed` below writes this shape.
  const { component, fields } = schema as { component: string; fields: readonly string[] };
  gen.forIn("key", data, (key) => {
    const isUnknown = fields.reduce((test, field) => _`${test} && ${key} !== ${field}`, _`true`);
    gen.if(isUnknown, () => {
      report(
        gen,
        _`{instancePath: ${strConcat(names.default.instancePath, it.errorPath)}, schemaPath: ${`#/definitions/${component}/additionalProperties`}, keyword: "additionalProperties", params: {additionalProperty: ${key}}, message: "must NOT have additional properties"}`,
      );
    });
  });
}

function report(gen: KeywordCxt["gen"], found: Code): void {
  const { vErrors, errors } = names.default;
  const error = gen.const("error", found);
  gen.code(_`if (${vErrors} === null) { ${vErrors} = [${error}]; } else { ${vErrors}.push(${error}); }`);
  gen.code(_`${errors}++`);
}

const BOUNDS = ["minLength", "maxLength", "pattern", "minimum", "maximum", "x-gw-bytes"] as const;

/** Resolves a use with bounds of its own, which replace those of the component; ajv would check and report both. */
function withOwnBounds(graph: SchemaGraph, part: Schema): Schema {
  return part.$ref !== undefined && BOUNDS.some((bound) => part[bound] !== undefined) ? graph.resolve(part) : part;
}

function closed(component: string, schema: Schema): SchemaObject {
  const result = forAjv(schema);
  if (!isStruct(schema) || schema["x-kubernetes-preserve-unknown-fields"] === true) return result;
  return { ...result, closed: { component, fields: Object.keys(schema.properties ?? {}) } };
}

/**
 * Rejects integers beyond 64 bits, which the API server does not accept for any bounds. The value of the keyword is the
 * type.
 */
function int64Keyword({ gen, data, it, schema }: KeywordCxt): void {
  const type: unknown = schema; // one type name or several
  gen.if(_`Math.abs(${data}) >= 2 ** 63`, () => {
    report(
      gen,
      _`{instancePath: ${strConcat(names.default.instancePath, it.errorPath)}, schemaPath: ${`${it.errSchemaPath}/type`}, keyword: "type", params: {type: ${stringify(type)}}, message: "must be of another type"}`,
    );
  });
}

/** Reports each item that a set or a map list must not hold, at the path of that item. */
function duplicateKeyword(context: KeywordCxt): void {
  const { gen, data, schema, it } = context;
  const find = gen.scopeValue("func", { ref: duplicateKeyword, code: _`require("list-errors").findListErrors` });
  gen.forOf("item", _`${find}(${data}, ${stringify(schema)})`, (item) => {
    const path = _`${strConcat(names.default.instancePath, it.errorPath)} + "/" + ${item}.index`;
    report(
      gen,
      _`{instancePath: ${path}, schemaPath: ${`${it.errSchemaPath}/duplicate`}, keyword: ${item}.kind, params: {key: ${item}.key}, message: "must not be in the list"}`,
    );
  });
}

/** Converts one of our schemas to the dialect of ajv: closed objects, formats as bounds, list types as `duplicate`. */
function forAjv(schema: Schema): SchemaObject {
  const source = withFormat(schema);
  const result: SchemaObject = {};
  for (const [keyword, value] of Object.entries(source)) {
    if (keyword.startsWith("x-") || IGNORED.has(keyword)) continue;
    result[keyword] = value;
  }
  if (source.$ref !== undefined) result["$ref"] = `#/definitions/${source.$ref}`;
  if (source.format !== undefined) Object.assign(result, formatBounds(source.format), onlySet(source));
  if (source.properties !== undefined) {
    result["properties"] = Object.fromEntries(
      Object.entries(source.properties).map(([name, child]) => [name, forAjv(child)]),
    );
  }
  if (source["x-kubernetes-int-or-string"] === true) result["type"] = ["integer", "string"];
  if (source.type === "integer" || source["x-kubernetes-int-or-string"] === true) result["int64"] = result["type"];
  if (source.items !== undefined) result["items"] = forAjv(source.items);
  if (typeof source.additionalProperties === "object")
    result["additionalProperties"] = forAjv(source.additionalProperties);
  for (const junctor of ["oneOf", "anyOf", "allOf"] as const) {
    if (source[junctor] !== undefined) result[junctor] = source[junctor].map(forAjv);
  }
  if (source.not !== undefined) result["not"] = forAjv(source.not);
  const keys = duplicateKeys(source);
  if (keys !== undefined) result["duplicate"] = keys;
  return source["x-gw-null"] === true ? unlessNull(result) : result;
}

/**
 * Accepts null. `if` keeps the errors of other values as they are; `anyOf` would also report that the value is not
 * null.
 */
function unlessNull(schema: SchemaObject): SchemaObject {
  return { if: { type: "null" }, else: schema };
}

/**
 * Keywords without effect here. Nulls that are not allowed are removed before validation, so `nullable` is not needed.
 */
const IGNORED: ReadonlySet<string> = new Set(["description", "default", "format", "example", "nullable"]);

/** Returns the bounds and patterns of a format. @throws when the format is not in the table */
export function formatBounds(format: string): Schema {
  const bounds = FORMAT_BOUNDS[format];
  if (bounds === undefined) throw new Error(`the format ${format} has no check in codegen/emit/validators.ts`);
  return bounds;
}

/** Returns the bounds of the schema itself, which take precedence over those of its format. */
function onlySet({ minimum, maximum, pattern }: Schema): Schema {
  return {
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...(pattern === undefined ? {} : { pattern }),
  };
}

function duplicateKeys(schema: Schema): readonly string[] | undefined {
  if (schema["x-kubernetes-list-type"] === "set") return [];
  return schema["x-kubernetes-list-type"] === "map" ? schema["x-kubernetes-list-map-keys"] : undefined;
}

function withoutRequire(code: string): CompiledValidators {
  let text = code.replace('"use strict";', "");
  const runtime: string[] = [];
  for (const [call, { name, from }] of Object.entries(RUNTIME)) {
    if (!text.includes(call)) continue;
    runtime.push(from);
    text = text.replaceAll(call, name);
  }
  text = withBound(text);
  const left = /require\([^)]*\)\S*/.exec(text);
  if (left !== null) throw new Error(`validators: the output still needs ${left[0]}`);
  return { code: `${text}\n`, runtime };
}

function nameIn(from: string): string {
  return Object.values(RUNTIME).find((entry) => entry.from === from)?.name ?? "";
}

/**
 * Adds a bound to every loop over the input, so that it ends after MAX_SCHEMA_ERRORS. Each error of an item is copied
 * into the list of its parent, so without the bound 60,000 wrong items take a minute.
 *
 * @throws when ajv writes a loop of another form than those known here
 */
function withBound(code: string): string {
  return code.replaceAll(/\bfor ?\((let|const) ([^{]*)\) ?\{/g, (loop: string, binding: string, head: string) => {
    const counted = /^(i\d+) ?= ?0; \1<(len\d+); \1\+\+$/.test(head);
    const walked = /^\w+ (in|of) /.test(head);
    if ((binding === "let" && counted) || (binding === "const" && walked)) {
      return `${loop}if(errors >= ${MAX_SCHEMA_ERRORS}) break;`;
    }
    throw new Error(`validators: a loop without a bound: ${loop}`);
  });
}

function table(roots: ReadonlyMap<string, string>): string {
  const lines = [...roots.keys()].map((key, at) => `  ${JSON.stringify(key)}: errorsOf(validate${at}),\n`);
  return `
function errorsOf(validate) {
  return (object) => (validate(object) ? [] : validate.errors);
}

export const validators = {
${lines.join("")}};
`;
}

const DECLARATIONS = `
/** An error of the structural schema, as ajv reports it. */
export interface AjvError {
  /** JSON pointer to the value. */
  readonly instancePath: string;
  /** "#/definitions/<component>/<keyword>" */
  readonly schemaPath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** By "group/Kind": a function that returns the errors of the structural schema, unknown fields included. */
export declare const validators: Readonly<Record<string, (object: unknown) => readonly AjvError[]>>;
`;

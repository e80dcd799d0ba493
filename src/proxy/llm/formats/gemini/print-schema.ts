/**
 * Prints a JSON Schema as a schema of the Gemini API, which knows a subset: `$ref` is replaced by what it names, `allOf`
 * is merged, `const` becomes an `enum` of one, a list of types becomes `nullable` or `anyOf`; unknown keywords are left
 * out. A reference in a ring stays, with its definitions.
 */
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";

/** Keywords whose values are printed unchanged. */
const COPIED = [
  "title",
  "description",
  "pattern",
  "default",
  "example",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
  "propertyOrdering",
] as const;

const FORMATS: ReadonlySet<string> = new Set(["enum", "date-time"]);

/** References can multiply: a schema that would grow beyond this many nodes keeps its further references. */
const MAX_NODES = 5000;
/** Longest chain of references that is followed. */
const MAX_REFERENCES = 64;
/** Most levels of printed schemas, one in another; the stack would end at some thousand. */
const MAX_DEPTH = 200;

export function printSchema(schema: JsonObject): JsonObject {
  return new SchemaPrinter(schema).print();
}

class SchemaPrinter {
  readonly #root: JsonObject;
  /** References that are being replaced; one that is met again is a ring. */
  readonly #active = new Set<string>();
  readonly #kept = new Set<string>();
  #nodes = 0;
  #depth = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  print(): JsonObject {
    const result = this.#schema(this.#root);
    const definitions = new Map<string, JsonObject>();
    // Printing a definition can keep further references; a Set also visits what is added on the way.
    for (const ref of this.#kept) {
      const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(ref)?.[1];
      const target = this.#target(ref);
      if (name !== undefined && target !== undefined) definitions.set(name, this.#definition(ref, target));
    }
    if (definitions.size > 0) result["$defs"] = Object.fromEntries(definitions);
    return result;
  }

  #definition(ref: string, target: JsonObject): JsonObject {
    this.#active.add(ref);
    const printed = this.#schema(target);
    this.#active.delete(ref);
    return printed;
  }

  /** Deeper than any model reads, a schema that names itself allows everything. */
  #schema(schema: JsonObject): JsonObject {
    if (this.#depth >= MAX_DEPTH) return {};
    this.#depth++;
    const printed = this.#keywords(schema);
    this.#depth--;
    return printed;
  }

  #keywords(schema: JsonObject): JsonObject {
    this.#nodes++;
    const ref = stringOf(schema["$ref"]);
    if (ref !== undefined) return this.#reference(ref, schema);
    if (Array.isArray(schema["allOf"])) return this.#schema(this.#merged(schema));
    const result: JsonObject = {};
    for (const name of COPIED) if (schema[name] !== undefined) result[name] = schema[name];
    const format = stringOf(schema["format"]);
    if (format !== undefined && FORMATS.has(format)) result["format"] = format;
    if (Array.isArray(schema["required"]) && schema["required"].length > 0) result["required"] = schema["required"];
    this.#printTypes(schema, result);
    printEnum(schema, result);
    this.#printChildren(schema, result);
    return result;
  }

  #reference(ref: string, schema: JsonObject): JsonObject {
    const target = this.#target(ref);
    if (target === undefined) return this.#schema({ ...schema, $ref: undefined });
    if (this.#active.has(ref) || this.#active.size >= MAX_REFERENCES || this.#nodes > MAX_NODES) {
      this.#kept.add(ref);
      return { $ref: ref.replace("#/definitions/", "#/$defs/") };
    }
    this.#active.add(ref);
    // Keywords beside a reference add to what it names.
    const result = this.#schema({ ...target, ...schema, $ref: target["$ref"] });
    this.#active.delete(ref);
    return result;
  }

  /** Finds what a reference within the schema names (RFC 6901). */
  #target(ref: string): JsonObject | undefined {
    if (ref !== "#" && !ref.startsWith("#/")) return undefined;
    let value: Json | undefined = this.#root;
    for (const step of ref.split("/").slice(1)) {
      const name = decodeStep(step);
      const parent: JsonObject | Json[] | undefined = Array.isArray(value) ? value : objectOf(value);
      if (parent === undefined || !Object.hasOwn(parent, name)) return undefined;
      value = Array.isArray(parent) ? parent[Number(name)] : parent[name];
    }
    return objectOf(value);
  }

  /** Merges the members of `allOf`, and theirs, into one schema. What a reference names is merged once. */
  #merged({ allOf, ...own }: JsonObject): JsonObject {
    const seen = new Set(this.#active);
    const waiting = listOf(allOf).toReversed();
    let result: JsonObject = own;
    while (waiting.length > 0 && this.#nodes++ <= MAX_NODES) {
      const { $ref, allOf: inner, ...member } = objectOf(waiting.pop()) ?? {};
      result = mergeSchemas(member, result);
      waiting.push(...listOf(inner).toReversed());
      const target = typeof $ref === "string" && !seen.has($ref) ? this.#target($ref) : undefined;
      if (target === undefined) continue;
      seen.add($ref as string); // it named a target
      waiting.push(target);
    }
    return result;
  }

  #printTypes(schema: JsonObject, result: JsonObject): void {
    if (schema["nullable"] === true) result["nullable"] = true;
    const { type } = schema;
    const types = listOf(type).filter((each) => each !== "null");
    if (typeof type === "string") result["type"] = type;
    else if (types.length === 1) result["type"] = types[0];
    else if (types.length > 1) result["anyOf"] = types.map((each) => this.#schema(ofType(schema, each)));
    if (Array.isArray(type) && types.length < type.length) result["nullable"] = true;
  }

  #printChildren(schema: JsonObject, result: JsonObject): void {
    const properties = objectOf(schema["properties"]);
    if (properties !== undefined && result["anyOf"] === undefined) {
      const entries = Object.entries(properties).map(
        ([name, value]) => [name, this.#schema(objectOf(value) ?? {})] as const,
      );
      result["properties"] = Object.fromEntries(entries);
      result["type"] ??= "object";
    }
    const items = objectOf(schema["items"]) ?? objectOf(listOf(schema["prefixItems"])[0]);
    // The API refuses a list of nothing in particular.
    if (result["type"] === "array") result["items"] = isEmpty(items) ? { type: "object" } : this.#schema(items);
    const options = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])].map((option) => objectOf(option) ?? {});
    if (options.length > 0) this.#printOptions(options, result);
  }

  #printOptions(options: readonly JsonObject[], result: JsonObject): void {
    const others = options.filter(({ type }) => type !== "null");
    if (others.length < options.length) result["nullable"] = true;
    const [only] = others;
    if (others.length === 1 && only !== undefined) {
      const printed = this.#schema(only);
      for (const [name, value] of Object.entries(printed)) if (result[name] === undefined) define(result, name, value);
    } else if (others.length > 1) result["anyOf"] = others.map((option) => this.#schema(option));
  }
}

function isEmpty(schema: JsonObject | undefined): schema is undefined {
  return schema === undefined || Object.keys(schema).length === 0;
}

function ofType(schema: JsonObject, type: Json): JsonObject {
  const isObject = type === "object";
  const isArray = type === "array";
  return {
    type,
    ...(isObject ? { properties: schema["properties"], required: schema["required"] } : {}),
    ...(isArray ? { items: schema["items"] } : {}),
  };
}

/** Members of an `enum` are strings in this API; of other types only the type is left. */
function printEnum(schema: JsonObject, result: JsonObject): void {
  const given = schema["const"] === undefined ? listOf(schema["enum"]) : [schema["const"]];
  if (given.length === 0) return;
  if (given.includes(null)) result["nullable"] = true;
  const texts = given.filter((value) => typeof value === "string");
  if (texts.length > 0 && texts.length >= given.filter((value) => value !== null).length) {
    result["enum"] = texts;
    result["type"] ??= "string";
  }
}

/** @param stronger wins where both have a keyword that cannot be merged */
function mergeSchemas(weaker: JsonObject, stronger: JsonObject): JsonObject {
  const required = [...new Set([...listOf(weaker["required"]), ...listOf(stronger["required"])])];
  const properties = { ...objectOf(weaker["properties"]), ...objectOf(stronger["properties"]) };
  return {
    ...weaker,
    ...stronger,
    ...(required.length > 0 ? { required } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
  };
}

function decodeStep(step: string): string {
  let text = step;
  try {
    text = decodeURIComponent(step);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
  }
  return text.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Adds a member; an assignment to `__proto__` would change the object's prototype instead. */
function define(target: JsonObject, name: string, value: Json | undefined): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

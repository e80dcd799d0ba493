/**
 * Converts a structural schema to the form that the emitters accept: only keywords with a meaning, bounds as in JSON
 * Schema draft 7, and null as a separate mark. It leaves out what a JavaScript validator cannot check, and notes it.
 */
import { KNOWN_FORMATS } from "../emit/validators.ts";
import type { Schema } from "../schema.ts";

export interface Prepared {
  readonly schema: Schema;
  /** Notes such as ".spec.x: the pattern … is not checked: …". */
  readonly notes: readonly string[];
}

const KEPT = [
  "type",
  "description",
  "default",
  "enum",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "multipleOf",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "required",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-list-type",
  "x-kubernetes-preserve-unknown-fields",
] as const;

/** @param root must have passed findStructuralErrors */
export function prepare(root: Schema): Prepared {
  const notes: string[] = [];
  return { schema: convert(root, "", notes), notes };
}

function convert(schema: Schema, path: string, notes: string[]): Schema {
  const result: Schema = {};
  for (const keyword of KEPT) if (schema[keyword] !== undefined) Object.assign(result, { [keyword]: schema[keyword] });
  if (schema.nullable === true) result["x-gw-null"] = true;
  // A list is a set or a map by scalar keys; other sets are compared as a whole, which keys cannot express.
  if (result["x-kubernetes-list-type"] === "atomic") delete result["x-kubernetes-list-type"];
  takePattern(schema, result, path, notes);
  takeFormat(schema, result, path, notes);
  takeExclusive(schema, result);
  if (schema.properties !== undefined) {
    result.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => [name, convert(child, `${path}.${name}`, notes)]),
    );
  }
  if (schema.items !== undefined) result.items = convert(schema.items, `${path}[]`, notes);
  if (typeof schema.additionalProperties === "object") {
    result.additionalProperties = convert(schema.additionalProperties, `${path}{}`, notes);
  } else if (schema.additionalProperties === true) result.additionalProperties = true;
  // The branches of int-or-string repeat its type.
  if (schema["x-kubernetes-int-or-string"] !== true) {
    for (const junctor of ["allOf", "anyOf", "oneOf"] as const) {
      const branches = schema[junctor];
      if (branches !== undefined) result[junctor] = branches.map((branch) => convert(branch, path, notes));
    }
    if (schema.not !== undefined) result.not = convert(schema.not, path, notes);
  }
  return result;
}

/**
 * Takes over a pattern. Patterns are RE2; most mean the same in JavaScript, some only after needless escapes are
 * removed.
 */
function takePattern({ pattern }: Schema, result: Schema, path: string, notes: string[]): void {
  if (pattern === undefined) return;
  const relaxed = pattern.replaceAll(/\\([^A-Za-z0-9\s^$\\.*+?()[\]{}|/-])/g, "$1");
  const usable = [pattern, relaxed].find((candidate) => {
    try {
      return new RegExp(candidate, "u") instanceof RegExp;
    } catch {
      return false;
    }
  });
  if (usable === undefined) notes.push(`${path}: the pattern ${pattern} is not checked: JavaScript has no such syntax`);
  else result.pattern = usable;
}

/** Takes over a known format. The API server ignores unknown formats as well. */
function takeFormat({ format }: Schema, result: Schema, path: string, notes: string[]): void {
  if (format === undefined) return;
  if (KNOWN_FORMATS.has(format)) result.format = format;
  else notes.push(`${path}: the format ${format} is not checked`);
}

/**
 * Converts exclusive bounds: OpenAPI 3.0 writes `exclusiveMinimum: true` beside `minimum`, draft 7 writes the number
 * there.
 */
function takeExclusive(schema: Schema, result: Schema): void {
  const { exclusiveMinimum, exclusiveMaximum } = schema as { exclusiveMinimum?: unknown; exclusiveMaximum?: unknown };
  if (exclusiveMinimum === true && result.minimum !== undefined) {
    result.exclusiveMinimum = result.minimum;
    delete result.minimum;
  }
  if (exclusiveMaximum === true && result.maximum !== undefined) {
    result.exclusiveMaximum = result.maximum;
    delete result.maximum;
  }
}

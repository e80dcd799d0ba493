/**
 * The keywords that a schema may use, with a check of each value. An unknown keyword or a wrong value is reported with
 * file and path; otherwise the API server would reject the CRD with a message that names neither.
 */
import { CEL_PHASES } from "../src/cel/environments/phases.ts";
import { schemaError } from "./errors.ts";
import type { Schema } from "./schema.ts";

type Check = (value: unknown) => string | undefined;

const isString: Check = (value) => (typeof value === "string" ? undefined : "must be text");
const isTrue: Check = (value) => (value === true ? undefined : "must be true");
const isNumber: Check = (value) => (typeof value === "number" ? undefined : "must be a number");
const isCount: Check = (value) =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 ? undefined : "must be a whole number";
const anything: Check = () => undefined;
const names: Check = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === "string")
    ? undefined
    : "must be a list of names";
const groups: Check = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((group) => names(group) === undefined)
    ? undefined
    : names(value);
const oneOf =
  (...allowed: readonly string[]): Check =>
  (value) =>
    typeof value === "string" && allowed.includes(value) ? undefined : `must be one of ${allowed.join(", ")}`;

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? // An object that is not an array has string keys.
      (value as Record<string, unknown>)
    : undefined;
}

function shape(fields: Readonly<Record<string, Check>>, optional: readonly string[] = []): Check {
  return (value) => {
    const object = record(value);
    if (object === undefined) return "must be an object";
    for (const name of Object.keys(object)) if (fields[name] === undefined) return `has an unknown member ${name}`;
    for (const [name, check] of Object.entries(fields)) {
      if (object[name] === undefined && optional.includes(name)) continue;
      const error = check(object[name]);
      if (error !== undefined) return `${name} ${error}`;
    }
    return undefined;
  };
}

const isBoolean: Check = (value) => (typeof value === "boolean" ? undefined : "must be true or false");
const isTextMap: Check = (value) =>
  record(value) !== undefined && Object.values(value as object).every((entry) => typeof entry === "string")
    ? undefined
    : "must map fields to values";
const kinds: Check = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((kind) => /^[a-z0-9.-]*\/[A-Z]\w*$/.test(String(kind)))
    ? undefined
    : "must be a list of group/Kind";
const celRule = shape(
  { rule: isString, message: isString, messageExpression: isString, fieldPath: isString, reason: isString },
  ["message", "messageExpression", "fieldPath", "reason"],
);
const rules: Check = (value) => {
  if (!Array.isArray(value)) return "must be a list of rules";
  for (const [index, rule] of value.entries()) {
    const error = celRule(rule);
    if (error !== undefined) return `[${index}] ${error}`;
    if (rule.message === undefined && rule.messageExpression === undefined) return `[${index}] has no message`;
  }
  return undefined;
};

/** The formats of `x-gw-format`, and the bounds that each one implies. */
export const FORMATS: Readonly<Record<string, { readonly pattern?: string; readonly maxLength: number }>> = {
  "address-range": { pattern: "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$", maxLength: 43 },
  duration: { pattern: "^([0-9]{1,5}(h|m|s|ms)){1,4}$", maxLength: 32 },
  hostname: { pattern: "^[a-z0-9]+((-+|[.])[a-z0-9]+)*$", maxLength: 253 },
  quantity: {
    pattern: "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkKMGTPE]|[eE][+-]?[0-9]{1,2})?$",
    maxLength: 32,
  },
  regex: { maxLength: 1024 },
  htpasswd: { maxLength: 1024 },
};

const KEYWORDS: Readonly<Record<string, Check>> = {
  $ref: isString,
  type: oneOf("object", "array", "string", "integer", "number", "boolean"),
  format: isString,
  description: isString,
  default: anything,
  enum: (value) => (Array.isArray(value) && value.length > 0 ? undefined : "must be a list of values"),
  minLength: isCount,
  maxLength: isCount,
  pattern: isString,
  minimum: isNumber,
  maximum: isNumber,
  minItems: isCount,
  maxItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  required: names,
  properties: (value) => (record(value) === undefined ? "must be an object" : undefined),
  additionalProperties: (value) => (record(value) === undefined ? "must be a schema" : undefined),
  items: (value) => (record(value) === undefined ? "must be a schema" : undefined),
  "x-kubernetes-validations": rules,
  "x-kubernetes-list-type": oneOf("atomic", "set", "map"),
  "x-kubernetes-list-map-keys": names,
  "x-kubernetes-map-type": oneOf("atomic", "granular"),
  "x-kubernetes-preserve-unknown-fields": isTrue,
  "x-kubernetes-int-or-string": isTrue,
  nullable: isTrue,
  "x-gw-exactly-one-of": groups,
  "x-gw-at-most-one-of": groups,
  "x-gw-at-least-one-of": groups,
  "x-gw-if": shape({ when: isTextMap, "then-only": names }),
  "x-gw-immutable": isTrue,
  "x-gw-ref": shape({ kinds, grant: isBoolean, selector: isBoolean }, ["selector"]),
  "x-gw-secret": isTrue,
  "x-gw-cel": oneOf(...CEL_PHASES),
  "x-gw-cel-or": oneOf("duration"),
  "x-gw-cel-if": shape({ when: isTextMap, phase: oneOf(...CEL_PHASES) }),
  "x-gw-bytes": shape({ min: isCount, max: isCount }),
  "x-gw-min-duration": isString,
  "x-gw-fail-closed": isTrue,
  "x-gw-reserved": names,
  "x-gw-format": oneOf(...Object.keys(FORMATS)),
  "x-gw-default": isString,
  "x-gw-include": isString,
  "x-gw-conditional": isString,
};

/** Keywords allowed beside `$ref`, none of which changes the shape. */
const BESIDE_REF: ReadonlySet<string> = new Set([
  "$ref",
  "description",
  "default",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "x-gw-bytes",
  "x-gw-cel",
  "x-gw-cel-if",
  "x-gw-default",
  "x-gw-immutable",
  "x-gw-min-duration",
  "x-gw-fail-closed",
  "x-gw-ref",
  "x-gw-secret",
]);

/** @throws SchemaError with file and path of the first error */
export function checkVocabulary(file: string, path: string, schema: Schema): void {
  if (record(schema) === undefined) throw schemaError(`${file}.yaml`, path, "must be a schema");
  for (const [keyword, value] of Object.entries(schema)) {
    const check = KEYWORDS[keyword];
    if (check === undefined) throw schemaError(`${file}.yaml`, path, `unknown keyword ${keyword}`);
    const error = check(value);
    if (error !== undefined) throw schemaError(`${file}.yaml`, path, `${keyword} ${error}`);
    if (schema.$ref !== undefined && !BESIDE_REF.has(keyword)) {
      throw schemaError(`${file}.yaml`, path, `${keyword} may not stand beside $ref`);
    }
  }
  for (const [name, child] of Object.entries(schema.properties ?? {})) checkVocabulary(file, `${path}.${name}`, child);
  if (schema.items !== undefined) checkVocabulary(file, `${path}[]`, schema.items);
  if (typeof schema.additionalProperties === "object") {
    checkVocabulary(file, `${path}{}`, schema.additionalProperties);
  }
}

/**
 * Checks the requirements of the API server for the schemas of CRDs (structural schemas), so that the message names our
 * source and not the object in a cluster. It also requires that every string, list and map is bounded, because the API
 * server estimates the cost of rules from the bounds, and that every pattern means the same in RE2 and in JavaScript.
 */
import { Ajv } from "ajv";
import { RE2JS } from "re2js";
import { parseExpression } from "../src/cel/compile/compile-expression.ts";
import { RULE_ENVIRONMENT } from "../src/cel/environments/index.ts";
import { schemaError } from "./errors.ts";
import type { SchemaGraph } from "./graph.ts";
import { expand } from "./expand.ts";
import { otherRules, withFormat } from "./lower.ts";
import { fieldGroups, isStruct, ONE_OF_KEYWORDS, walk, type Component, type Schema } from "./schema.ts";

const SAMPLE = [
  "|a|A|0|-|.|/|:|a-b|a.b|A.b-1|a_b|-a|a-|.a|a.|a b|a\n|é|ａ".split("|"),
  "5s|1h30m|10ms|1d|99999h|:path|:x|x-api-key|/v1|us-east-1|gwproxy.dev/A".split("|"),
].flat();

/** @throws SchemaError for the first error */
export function checkStructure(graph: SchemaGraph, components: readonly Component[]): void {
  for (const component of components) {
    for (const [path, schema] of walk(component.schema)) {
      const fail = (message: string): never => {
        throw schemaError(`${component.file}.yaml`, component.name + path, message);
      };
      const resolved = withFormat(graph.resolve(schema));
      checkType(resolved, schema, path, fail);
      checkFields(resolved, fail);
      checkList(graph, resolved, fail);
      if (component.schema["x-kubernetes-preserve-unknown-fields"] !== true) checkBounds(resolved, fail);
      if (resolved.pattern !== undefined) checkPattern(resolved.pattern, fail);
      if (schema.default !== undefined) checkDefault(graph, schema, fail);
      checkRules(schema, fail);
    }
  }
}

type Fail = (message: string) => never;

function checkType(resolved: Schema, schema: Schema, path: string, fail: Fail): void {
  const typed = resolved.type !== undefined || resolved["x-kubernetes-int-or-string"] === true;
  if (!typed && resolved["x-kubernetes-preserve-unknown-fields"] !== true) fail("has no type");
  if (resolved.properties !== undefined && resolved.additionalProperties !== undefined) {
    fail("has properties and additionalProperties");
  }
  if (path !== "" && isStruct(schema)) fail("an object with fields must be a component with a name");
}

function checkFields(schema: Schema, fail: Fail): void {
  const fields = Object.keys(schema.properties ?? {});
  const condition = schema["x-gw-if"];
  const named = [
    ...(schema.required ?? []),
    ...ONE_OF_KEYWORDS.flatMap((keyword) => fieldGroups(schema, keyword).flat()),
    ...(condition === undefined ? [] : [...Object.keys(condition.when), ...condition["then-only"]]),
  ];
  for (const name of named) if (!fields.includes(name)) fail(`names the field ${name}, which does not exist`);
}

function checkList(graph: SchemaGraph, schema: Schema, fail: Fail): void {
  if (schema.type !== "array") return;
  if (schema.items === undefined) return fail("has no items");
  const items = graph.resolve(schema.items);
  if (schema["x-kubernetes-list-type"] === undefined) fail("has no x-kubernetes-list-type");
  if (schema["x-kubernetes-list-type"] === "set" && (items.type === "object" || items.type === "array")) {
    fail("is a set of values that are not scalar");
  }
  if (schema["x-kubernetes-list-type"] !== "map") return;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  if (keys.length === 0) fail("is a map without keys");
  for (const key of keys) {
    const field = items.properties?.[key];
    if (field === undefined) return fail(`has the key ${key}, which is no field of its items`);
    const { type, default: fallback } = graph.resolve(field);
    if (type === "object" || type === "array") fail(`has the key ${key}, which is not scalar`);
    if (!(items.required ?? []).includes(key) && fallback === undefined) fail(`has the key ${key}, which is optional`);
  }
}

function checkBounds(schema: Schema, fail: Fail): void {
  const { type } = schema;
  if (type === "string" && schema.maxLength === undefined && schema.enum === undefined && schema.format === undefined) {
    fail("is a text without maxLength");
  }
  if (type === "array" && schema.maxItems === undefined) fail("is a list without maxItems");
  if (typeof schema.additionalProperties === "object" && schema.maxProperties === undefined) {
    fail("is a map without maxProperties");
  }
}

function checkPattern(pattern: string, fail: Fail): void {
  try {
    const re2 = RE2JS.compile(pattern);
    const js = new RegExp(pattern, "u");
    for (const text of SAMPLE) {
      if (re2.matcher(text).find() !== js.test(text)) {
        fail(`the pattern ${pattern} means something else in RE2 than in JavaScript for ${JSON.stringify(text)}`);
      }
    }
  } catch (error) {
    if (error instanceof Error) fail(`the pattern ${pattern} cannot be used: ${error.message}`);
    throw error;
  }
}

/** Checks that every rule compiles in the environment in which admission evaluates it. */
export function checkRules(schema: Schema, fail: Fail): void {
  for (const { rule, messageExpression } of otherRules(schema)) {
    for (const text of [rule, messageExpression ?? "''"]) {
      try {
        parseExpression(text, RULE_ENVIRONMENT);
      } catch (error) {
        fail(`the rule ${text} does not compile: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
}

function checkDefault(graph: SchemaGraph, schema: Schema, fail: Fail): void {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  const validate = ajv.compile(expand(graph, schema));
  if (!validate(schema.default))
    fail(`the default ${JSON.stringify(schema.default)} ${validate.errors?.[0]?.message ?? ""}`);
}

/**
 * Reads a schema of the Gemini API, a subset of OpenAPI 3.0, as JSON Schema: types in lower case, `nullable` as a type,
 * limits as numbers, although protobuf writes 64-bit numbers as strings.
 */
import type { Json, JsonObject } from "../../shared/json.ts";
import { readObject, readObjects } from "../../shared/request-fields.ts";
import { memberOf } from "./member.ts";

const LIMITS = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"] as const;
const COPIED = ["title", "description", "format", "pattern", "default", "minimum", "maximum", "required"] as const;

/** @param path of the schema @throws ProxyError llm_request_invalid */
export function readSchema(schema: JsonObject, path: string): JsonObject {
  const result: JsonObject = {};
  const { type, nullable } = schema;
  const lower = typeof type === "string" && type !== "TYPE_UNSPECIFIED" ? type.toLowerCase() : undefined;
  if (lower !== undefined) result["type"] = nullable === true ? [lower, "null"] : lower;
  for (const name of COPIED) if (schema[name] !== undefined && schema[name] !== null) result[name] = schema[name];
  for (const name of LIMITS) readLimit(memberOf(schema, name), name, result);
  // A value of an enum that may be null has to list it.
  if (Array.isArray(schema["enum"])) result["enum"] = nullable === true ? [...schema["enum"], null] : schema["enum"];
  if (schema["example"] !== undefined) result["examples"] = [schema["example"]];
  const items = readObject(schema["items"], `${path}.items`);
  if (items !== undefined) result["items"] = readSchema(items, `${path}.items`);
  const anyOf = readObjects(memberOf(schema, "anyOf"), `${path}.anyOf`);
  if (anyOf.length > 0) result["anyOf"] = readAnyOf(anyOf, nullable === true && lower === undefined, path);
  const properties = readObject(schema["properties"], `${path}.properties`);
  if (properties !== undefined) result["properties"] = readProperties(properties, `${path}.properties`);
  return result;
}

function readLimit(value: Json | undefined, name: string, result: JsonObject): void {
  if (value === undefined || value === null) return;
  const limit = Number(value);
  if (Number.isSafeInteger(limit)) result[name] = limit;
}

function readAnyOf(anyOf: readonly JsonObject[], isNullable: boolean, path: string): JsonObject[] {
  const options = anyOf.map((option, at) => readSchema(option, `${path}.anyOf[${at}]`));
  return isNullable ? [...options, { type: "null" }] : options;
}

function readProperties(properties: JsonObject, path: string): JsonObject {
  const entries = Object.entries(properties).map(([name, value]) => {
    const schema = readObject(value, `${path}.${name}`) ?? {};
    return [name, readSchema(schema, `${path}.${name}`)] as const;
  });
  // fromEntries defines members, so that a property named __proto__ is one like any other.
  return Object.fromEntries(entries);
}

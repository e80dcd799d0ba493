/**
 * Prints resources in the words that users write: values of enumerations as in manifests, "Strict" where the IR has
 * AUTHENTICATION_MODE_STRICT. The dump of the configuration uses it.
 */
import { ScalarType, type DescField, type DescMessage, type JsonValue } from "@bufbuild/protobuf";
import { RESOURCE_SCHEMAS } from "./encode.ts";
import { printable } from "./print.ts";
import type { Resource } from "./resource.ts";

type JsonObject = { [name: string]: JsonValue };

/** Returns the message of a resource as JSON without its secrets, in users' words. */
export function printInWords(resource: Resource): JsonObject {
  return wordsOf(RESOURCE_SCHEMAS[resource.type], objectOf(printable(resource)));
}

function wordsOf({ fields }: DescMessage, json: JsonObject): JsonObject {
  const byName = new Map(fields.map((field) => [field.jsonName, field]));
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => {
      const field = byName.get(name);
      return [name, field === undefined ? value : valueInWords(field, value)];
    }),
  );
}

function valueInWords(field: DescField, value: JsonValue): JsonValue {
  if (field.enum !== undefined) return eachValue(value, (name) => enumWord(field.enum.sharedPrefix ?? "", name));
  if (field.message !== undefined) {
    const { message } = field;
    // Well-known types, such as Struct and Timestamp, have a JSON form of their own.
    if (message.typeName.startsWith("google.protobuf.")) return value;
    const print = (item: JsonValue): JsonValue => (isObject(item) ? wordsOf(message, item) : item);
    return field.fieldKind === "map" && isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, print(item)]))
      : eachValue(value, print);
  }
  const isMilliseconds =
    field.fieldKind === "scalar" && field.scalar === ScalarType.INT64 && field.name.endsWith("_at_ms");
  return isMilliseconds ? new Date(Number(value)).toISOString() : value;
}

function eachValue(value: JsonValue, print: (item: JsonValue) => JsonValue): JsonValue {
  return Array.isArray(value) ? value.map(print) : print(value);
}

/** "AUTHENTICATION_MODE_STRICT" becomes "Strict". */
function enumWord(prefix: string, name: JsonValue): JsonValue {
  if (typeof name !== "string") return name;
  const own = name.toLowerCase().startsWith(prefix) ? name.slice(prefix.length) : name;
  return own
    .toLowerCase()
    .split("_")
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objectOf(value: JsonValue): JsonObject {
  return isObject(value) ? value : {};
}

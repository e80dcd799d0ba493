/**
 * The form of an answer for Claude, behind Messages and Converse. Its schemas are a subset of JSON Schema: objects are
 * closed, and limits of numbers, texts and lists are unknown (Anthropic, "Structured outputs"). As the official clients
 * do, what the vendor would refuse is told to the model in the description.
 */
import type { Conversation, SystemText } from "../../conversation/conversation.ts";
import { objectOf, type Json, type JsonObject } from "../../shared/json.ts";

const JSON_ALONE = "Answer with one JSON object and nothing else.";

/** Keywords that the vendor refuses. */
const REFUSED: ReadonlySet<string> = new Set(
  (
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems " +
    "minContains maxContains minProperties maxProperties patternProperties"
  ).split(" "),
);
const FORMATS: ReadonlySet<Json | undefined> = new Set(
  "date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "),
);
/** Keywords whose members are schemas, and those that are schemas or lists of them. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);
const SCHEMAS: ReadonlySet<string> = new Set(["anyOf", "allOf", "items"]);
/** What has no meaning, and what is written anew. */
const LEFT_OUT: ReadonlySet<string> = new Set(["$schema", "additionalProperties"]);

/**
 * Returns the instructions, with one more in place of a form that says nothing but that it is an object: closed, it could
 * only be empty.
 */
export function withOutput({ system, output }: Pick<Conversation, "output" | "system">): readonly SystemText[] {
  if (output === undefined || schemaOf(output) !== undefined) return system;
  return [...system, { role: "system", text: JSON_ALONE }];
}

const SAYS_MORE = ["properties", "anyOf", "allOf", "oneOf", "$ref"];

function schemaOf({ schema }: NonNullable<Conversation["output"]>): JsonObject | undefined {
  if (schema === undefined || schema["additionalProperties"] === false) return schema;
  return SAYS_MORE.some((name) => schema[name] !== undefined) ? schema : undefined;
}

/** @returns undefined where an instruction takes its place */
export function printOutputSchema(output: Conversation["output"]): JsonObject | undefined {
  const schema = output === undefined ? undefined : schemaOf(output);
  return schema === undefined ? undefined : printSchema(schema);
}

function printSchema(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).flatMap(([name, value]): [string, Json][] => {
    if (value === undefined || LEFT_OUT.has(name) || isRefused(name, value)) return [];
    if (name === "oneOf" && schema["anyOf"] === undefined) return [["anyOf", printEach(value)]];
    if (NAMED.has(name)) return [[name, printMembers(value)]];
    return [[name, SCHEMAS.has(name) ? printEach(value) : value]];
  });
  if (isObject(schema)) entries.push(["additionalProperties", false]);
  const told = Object.entries(schema).filter(([name, value]) => value !== undefined && isRefused(name, value));
  if (told.length > 0) {
    const { description } = schema;
    const limits = told.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
    entries.push(["description", typeof description === "string" ? `${description} (${limits})` : limits]);
  }
  return Object.fromEntries(entries);
}

function isRefused(name: string, value: Json): boolean {
  if (name === "minItems") return value !== 0 && value !== 1;
  return name === "format" ? !FORMATS.has(value) : REFUSED.has(name);
}

function isObject({ type, properties, additionalProperties }: JsonObject): boolean {
  if (type === undefined) return properties !== undefined || additionalProperties !== undefined;
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

/** Prints one schema or a list of them. */
function printEach(value: Json): Json {
  if (Array.isArray(value)) return value.map(printEach);
  const schema = objectOf(value);
  return schema === undefined ? value : printSchema(schema);
}

function printMembers(value: Json): Json {
  const members = objectOf(value);
  if (members === undefined) return value;
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, printEach(member ?? null)]));
}

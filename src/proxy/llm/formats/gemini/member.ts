/**
 * Access to members of Gemini bodies. The API is protobuf, whose JSON form takes a name in camel case and in snake case
 * alike; answers and the official clients use camel case.
 */
import type { Json, JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";

const SNAKE_NAMES = new Map<string, string>();

/** @param name in camel case; a constant, since the other spelling of each name is kept */
export function memberOf(object: JsonObject, name: string): Json | undefined {
  return object[name] ?? object[snakeCase(name)];
}

/**
 * Refuses a member that is there in both spellings, of which the service could read another one than guards have.
 * @throws ProxyError llm_request_invalid
 */
export function requireOneSpelling(object: JsonObject, name: string, path: string): void {
  if (object[name] !== undefined && object[snakeCase(name)] !== undefined)
    throw invalidRequest(`${path} must be there in one spelling`);
}

function snakeCase(name: string): string {
  let snake = SNAKE_NAMES.get(name);
  if (snake === undefined)
    SNAKE_NAMES.set(name, (snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)));
  return snake;
}

/** Returns both spellings of each name. */
export function bothSpellings(names: string): ReadonlySet<string> {
  return new Set(names.split(" ").flatMap((name) => [name, snakeCase(name)]));
}

/**
 * Access to members of Gemini bodies. The API is protobuf, whose JSON form takes a name in camel case and in snake case
 * alike; answers and the official clients use camel case.
 */
import type { Json, JsonObject } from "../../shared/json.ts";

const SNAKE_NAMES = new Map<string, string>();

/** @param name in camel case; a constant, since the other spelling of each name is kept */
export function memberOf(object: JsonObject, name: string): Json | undefined {
  return object[name] ?? object[snakeCase(name)];
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

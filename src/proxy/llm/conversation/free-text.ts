/**
 * Tools whose input is text and not JSON, for providers that know only functions: the text becomes the one argument of
 * a function. Readers of requests wrap it, printers of answers take it out again.
 */
import { stringOf, type JsonObject } from "../shared/json.ts";
import { argumentsObject } from "./arguments.ts";

const ARGUMENT = "input";

/** JSON Schema of a function that takes a text. */
export const FREE_TEXT_SCHEMA: JsonObject = {
  type: "object",
  properties: { [ARGUMENT]: { type: "string" } },
  required: [ARGUMENT],
  additionalProperties: false,
};

/** Returns the arguments of the function for an input. */
export function wrapFreeText(input: string): string {
  return JSON.stringify({ [ARGUMENT]: input });
}

/** Returns the input from the arguments of the function, which are the input itself where the model ignored the schema. */
export function unwrapFreeText(text: string): string {
  return stringOf(argumentsObject(text)?.[ARGUMENT]) ?? text;
}

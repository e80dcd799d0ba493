/**
 * Tools whose input is text and not JSON, for providers that know only functions: the text becomes the one argument of
 * a function. Readers of requests wrap it, printers of answers take it out again.
 */
import { stringOf, type JsonObject } from "../shared/json.ts";
import { argumentsObject } from "./arguments.ts";
import type { FunctionTool } from "./conversation.ts";

const ARGUMENT = "input";

/** JSON Schema of a function that takes a text. */
const FREE_TEXT_SCHEMA: JsonObject = {
  type: "object",
  properties: { [ARGUMENT]: { type: "string" } },
  required: [ARGUMENT],
  additionalProperties: false,
};

/** A grammar that OpenAI binds the input of a tool to. */
export interface InputGrammar {
  readonly definition: string;
  readonly syntax: string | undefined;
}

/** Returns the function for a tool. Other providers cannot bind a text to a grammar, so they are told it in words. */
export function freeTextFunction(
  name: string,
  description: string | undefined,
  grammar: InputGrammar | undefined,
): FunctionTool {
  const rule =
    grammar && `The input is a text that this ${grammar.syntax ?? "lark"} grammar matches:\n${grammar.definition}`;
  const described = [description, rule].filter((text) => text !== undefined).join("\n\n");
  return {
    kind: "function",
    name,
    schema: FREE_TEXT_SCHEMA,
    ...(described === "" ? {} : { description: described }),
  };
}

/** Returns the arguments of the function for an input. */
export function wrapFreeText(input: string): string {
  return JSON.stringify({ [ARGUMENT]: input });
}

/** Returns the input from the arguments of the function, which are the input itself where the model ignored the schema. */
export function unwrapFreeText(text: string): string {
  return stringOf(argumentsObject(text)?.[ARGUMENT]) ?? text;
}

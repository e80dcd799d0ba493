/** Names of models from clients, which get into logs, labels and paths. */
import { ProxyError } from "../../exchange/errors.ts";
import type { Json } from "./json.ts";

/** Matches control characters. */
const UNSAFE = /\p{Cc}/u;

/** @returns undefined when there is none @throws ProxyError llm_model_invalid */
export function readModelName(model: Json | undefined): string | undefined {
  if (model === undefined || model === null) return undefined;
  if (typeof model !== "string" || UNSAFE.test(model) || !model.isWellFormed())
    throw new ProxyError("llm_model_invalid", {
      text: `failed to process LLM request: model must be a string${typeof model === "string" ? " without control characters" : ""}`,
    });
  return model;
}

/** Matches what could lead a path elsewhere, or out of it. */
const UNSAFE_IN_PATH = /(?:^|\/)\.{0,2}(?:\/|$)|[\\%?#<>"{}|^`\s]/u;

/** @param name from a path, decoded @throws ProxyError llm_model_invalid for a name that is not safe in a path */
export function readPathModel(name: string): string {
  if (UNSAFE_IN_PATH.test(name))
    throw new ProxyError("llm_model_invalid", {
      text: "failed to process LLM request: the model in the path is not a safe name",
    });
  return readModelName(name) ?? name;
}

/** Decodes percent escapes; a broken one stays as it is. */
export function decodePathText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

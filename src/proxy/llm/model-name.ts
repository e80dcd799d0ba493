/** Names of models from clients, which get into logs, labels and paths. */
import { ProxyError } from "../exchange/errors.ts";
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

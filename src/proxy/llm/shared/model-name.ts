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
export function readPathModel(name: string): string | undefined {
  if (UNSAFE_IN_PATH.test(name))
    throw new ProxyError("llm_model_invalid", {
      text: "failed to process LLM request: the model in the path is not a safe name",
    });
  return readModelName(name);
}

/** Matches what leads a path elsewhere where a server decodes it, even twice, before it looks at its segments. */
const STEERING = /(?:^|\/)\.{0,2}(?:\/|$)|[\\%?#]/;

/**
 * Returns the name of a model that becomes a segment of a path once it is encoded. Names of resources have slashes.
 * @throws ProxyError llm_model_invalid
 */
export function requireSegment(model: string): string {
  if (!STEERING.test(model)) return model;
  throw new ProxyError("llm_model_invalid", {
    text: "failed to process LLM request: the model is not a safe name in the path of this provider",
  });
}

/** Decodes percent escapes; a broken one stays as it is. */
export function decodePathText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

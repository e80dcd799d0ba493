/** The format of OpenAI chat completions: `choices`, `usage.prompt_tokens`, streams of `chat.completion.chunk`. */
import { ProxyError } from "../../errors.ts";
import { countOf, objectOf, stringOf, type Json, type JsonObject } from "../json.ts";
import {
  invalidRequest,
  readBoolean,
  readObject,
  readObjects,
  requireList,
  requireObject,
  requireText,
} from "../request-fields.ts";
import type { Facts, Usage } from "../usage.ts";
import type { Format } from "./format.ts";

export const completions: Format = {
  name: "Completions",

  parse(body) {
    requireList(body["messages"], "messages").forEach(checkMessage);
    readObjects(body["tools"], "tools");
    readObject(body["stream_options"], "stream_options");
    return { body, model: readModel(body["model"]), streaming: readBoolean(body["stream"], "stream") === true };
  },

  // Always printed from the parsed body: of a repeated key the upstream could otherwise read another value than we did.
  print: (body) => Buffer.from(JSON.stringify(body)),

  usage(answer) {
    const facts: Facts = {};
    learn(answer, facts);
    return facts;
  },

  stream: learn,
};

/** Checks the parts that every converter and guard relies on; the rest is left to the provider or its converter. */
function checkMessage(item: Json, at: number): void {
  const path = `messages[${at}]`;
  const message = requireObject(item, path);
  requireText(message["role"], `${path}.role`);
  const { content } = message;
  if (Array.isArray(content)) readObjects(content, `${path}.content`);
  else if (content !== undefined && content !== null && typeof content !== "string")
    throw invalidRequest(`${path}.content must be a string or a list of parts`);
  readObjects(message["tool_calls"], `${path}.tool_calls`);
}

/** Matches control characters, which must not get into logs, labels and paths with the name. */
const UNSAFE = /\p{Cc}/u;

function readModel(model: Json | undefined): string | undefined {
  if (model === undefined || model === null) return undefined;
  if (typeof model !== "string" || UNSAFE.test(model) || !model.isWellFormed())
    throw new ProxyError("llm_model_invalid", {
      text: `failed to process LLM request: model must be a string${typeof model === "string" ? " without control characters" : ""}`,
    });
  return model;
}

function learn(answer: JsonObject, facts: Facts): boolean {
  const model = stringOf(answer["model"]);
  const usage = usageOf(objectOf(answer["usage"]));
  if (model !== undefined && model !== "") facts.model = model;
  if (usage !== undefined) facts.usage = usage;
  return usage !== undefined || model !== undefined;
}

function usageOf(reported: JsonObject | undefined): Usage | undefined {
  if (reported === undefined) return undefined;
  const input = countOf(reported["prompt_tokens"]);
  const output = countOf(reported["completion_tokens"]);
  const total = countOf(reported["total_tokens"]);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const usage: Usage = {
    inputTokens: input ?? Math.max(0, (total ?? 0) - (output ?? 0)),
    outputTokens: output ?? Math.max(0, (total ?? 0) - (input ?? 0)),
  };
  const prompt = objectOf(reported["prompt_tokens_details"]);
  const cached = countOf(prompt?.["cached_tokens"]);
  const written = countOf(prompt?.["cache_write_tokens"]);
  const reasoning = countOf(objectOf(reported["completion_tokens_details"])?.["reasoning_tokens"]);
  if (cached !== undefined) usage.cachedInputTokens = cached;
  if (written !== undefined) usage.cacheCreationInputTokens = written;
  if (reasoning !== undefined) usage.reasoningTokens = reasoning;
  if (input !== undefined) usage.providerInputTokens = input;
  if (total !== undefined) usage.providerTotalTokens = total;
  return usage;
}

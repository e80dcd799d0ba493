/** OpenAI chat completions: `choices`, `usage.prompt_tokens`, streams of `chat.completion.chunk`. */
import { ProxyError } from "../../errors.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../json.ts";
import type { Facts, Usage } from "../usage.ts";
import type { Format } from "./format.ts";

export const completions: Format = {
  name: "Completions",

  parse(body) {
    const { model, messages, stream } = body;
    if (!Array.isArray(messages)) throw invalid("messages must be a list");
    if (model !== undefined && model !== null && typeof model !== "string") throw invalid("model must be a string");
    if (stream !== undefined && stream !== null && typeof stream !== "boolean")
      throw invalid("stream must be a boolean");
    return { body, model: stringOf(model), streaming: stream === true };
  },

  // Always printed anew: with a repeated key the upstream could otherwise read another value than the one decided on.
  print: (body) => Buffer.from(JSON.stringify(body)),

  usage(answer) {
    const facts: Facts = {};
    learn(answer, facts);
    return facts;
  },

  stream: learn,
};

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

function invalid(reason: string): ProxyError {
  return new ProxyError("llm_request_invalid", { text: `failed to process LLM request: ${reason}` });
}

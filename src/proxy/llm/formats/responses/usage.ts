/** Finds model, usage and service tier in response objects and in the events of their streams. */
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";

/** Merges what a response object reports. @returns true when it has added something */
export function learnResponse(response: JsonObject, facts: Facts): boolean {
  const model = stringOf(response["model"]);
  const tier = stringOf(response["service_tier"]);
  const usage = readUsage(objectOf(response["usage"]));
  const isNew = usage !== undefined || (model ?? "") !== (facts.model ?? "") || tier !== facts.serviceTier;
  if (model !== undefined && model !== "") facts.model = model;
  if (tier !== undefined) facts.serviceTier = tier;
  if (usage !== undefined) facts.usage = usage;
  return isNew;
}

/** Merges an event; only those that carry the whole response report anything. */
export function learnEvent(event: JsonObject, facts: Facts): boolean {
  const response = objectOf(event["response"]);
  return response !== undefined && learnResponse(response, facts);
}

/**
 * Reads `usage`, whose input tokens include cached ones. The Realtime API names the details in the singular.
 * @returns undefined when it counts nothing
 */
export function readUsage(reported: JsonObject | undefined): Usage | undefined {
  if (reported === undefined) return undefined;
  const input = countOf(reported["input_tokens"]);
  const output = countOf(reported["output_tokens"]);
  const total = countOf(reported["total_tokens"]);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const inputs = objectOf(reported["input_tokens_details"]) ?? objectOf(reported["input_token_details"]);
  const outputs = objectOf(reported["output_tokens_details"]) ?? objectOf(reported["output_token_details"]);
  const usage: Usage = {
    inputTokens: input ?? Math.max(0, (total ?? 0) - (output ?? 0)),
    outputTokens: output ?? Math.max(0, (total ?? 0) - (input ?? 0)),
  };
  const counts: Partial<Record<keyof Usage, number | undefined>> = {
    cachedInputTokens: countOf(inputs?.["cached_tokens"]),
    cacheCreationInputTokens: countOf(inputs?.["cache_write_tokens"]),
    inputTextTokens: countOf(inputs?.["text_tokens"]),
    inputAudioTokens: countOf(inputs?.["audio_tokens"]),
    inputImageTokens: countOf(inputs?.["image_tokens"]),
    reasoningTokens: countOf(outputs?.["reasoning_tokens"]),
    outputTextTokens: countOf(outputs?.["text_tokens"]),
    outputAudioTokens: countOf(outputs?.["audio_tokens"]),
    outputImageTokens: countOf(outputs?.["image_tokens"]),
    providerInputTokens: input,
    providerTotalTokens: total,
  };
  for (const [name, count] of Object.entries(counts)) if (count !== undefined) usage[name as keyof Usage] = count; // as typed above
  return usage;
}

/** Prints usage for a client; its type requires all of these members. */
export function printUsage(usage: Usage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, cacheCreationInputTokens = 0, reasoningTokens = 0 } = usage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens, cache_write_tokens: cacheCreationInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

/** Finds model, usage and service tier in chat completions and their chunks. */
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";

/** Merges what a completion or a chunk reports. @returns true when it has added something */
export function learnFacts(answer: JsonObject, facts: Facts): boolean {
  const model = stringOf(answer["model"]);
  const tier = stringOf(answer["service_tier"]);
  const usage = readUsage(objectOf(answer["usage"]));
  const isNew = usage !== undefined || (model ?? "") !== (facts.model ?? "") || tier !== facts.serviceTier;
  if (model !== undefined && model !== "") facts.model = model;
  if (tier !== undefined) facts.serviceTier = tier;
  if (usage !== undefined) facts.usage = usage;
  return isNew;
}

/** Reads `usage`, whose prompt tokens include cached ones. @returns undefined when it counts nothing */
export function readUsage(reported: JsonObject | undefined): Usage | undefined {
  if (reported === undefined) return undefined;
  const input = countOf(reported["prompt_tokens"]);
  const output = countOf(reported["completion_tokens"]);
  const total = countOf(reported["total_tokens"]);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const prompt = objectOf(reported["prompt_tokens_details"]);
  const completion = objectOf(reported["completion_tokens_details"]);
  const counts: Partial<Record<keyof Usage, number | undefined>> = {
    cachedInputTokens: countOf(prompt?.["cached_tokens"]),
    cacheCreationInputTokens: countOf(prompt?.["cache_write_tokens"]),
    inputTextTokens: countOf(prompt?.["text_tokens"]),
    inputAudioTokens: countOf(prompt?.["audio_tokens"]),
    inputImageTokens: countOf(prompt?.["image_tokens"]),
    reasoningTokens: countOf(completion?.["reasoning_tokens"]),
    outputTextTokens: countOf(completion?.["text_tokens"]),
    outputAudioTokens: countOf(completion?.["audio_tokens"]),
    outputImageTokens: countOf(completion?.["image_tokens"]),
    providerInputTokens: input,
    providerTotalTokens: total,
  };
  const usage: Usage = {
    inputTokens: input ?? Math.max(0, (total ?? 0) - (output ?? 0)),
    outputTokens: output ?? Math.max(0, (total ?? 0) - (input ?? 0)),
  };
  return withCounts(usage, counts);
}

/** Adds the counts that are known. */
function withCounts(usage: Usage, counts: Partial<Record<keyof Usage, number | undefined>>): Usage {
  for (const [name, count] of Object.entries(counts)) if (count !== undefined) usage[name as keyof Usage] = count; // as typed above
  return usage;
}

/** Prints usage for a client; cached tokens also under the names that Messages providers use. */
export function printUsage(usage: Usage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, cacheCreationInputTokens = 0, reasoningTokens } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: {
      cached_tokens: cachedInputTokens,
      cache_write_tokens: cacheCreationInputTokens,
      ...(usage.inputAudioTokens === undefined ? {} : { audio_tokens: usage.inputAudioTokens }),
    },
    ...(reasoningTokens === undefined
      ? {}
      : {
          completion_tokens_details: {
            reasoning_tokens: reasoningTokens,
            ...(usage.outputAudioTokens === undefined ? {} : { audio_tokens: usage.outputAudioTokens }),
          },
        }),
    cache_read_input_tokens: cachedInputTokens,
    cache_creation_input_tokens: cacheCreationInputTokens,
  };
}

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
  const usage: Usage = {
    inputTokens: input ?? Math.max(0, (total ?? 0) - (output ?? 0)),
    outputTokens: output ?? Math.max(0, (total ?? 0) - (input ?? 0)),
  };
  addInputCounts(usage, objectOf(reported["prompt_tokens_details"]));
  addOutputCounts(usage, objectOf(reported["completion_tokens_details"]));
  if (input !== undefined) usage.providerInputTokens = input;
  if (total !== undefined) usage.providerTotalTokens = total;
  return usage;
}

/** Adds the counts that are known. Each is named here, because a loop over names takes several times as long. */
function addInputCounts(usage: Usage, details: JsonObject | undefined): void {
  if (details === undefined) return;
  const cached = countOf(details["cached_tokens"]);
  const written = countOf(details["cache_write_tokens"]);
  const text = countOf(details["text_tokens"]);
  const audio = countOf(details["audio_tokens"]);
  const image = countOf(details["image_tokens"]);
  if (cached !== undefined) usage.cachedInputTokens = cached;
  if (written !== undefined) usage.cacheCreationInputTokens = written;
  if (text !== undefined) usage.inputTextTokens = text;
  if (audio !== undefined) usage.inputAudioTokens = audio;
  if (image !== undefined) usage.inputImageTokens = image;
}

function addOutputCounts(usage: Usage, details: JsonObject | undefined): void {
  if (details === undefined) return;
  const reasoning = countOf(details["reasoning_tokens"]);
  const text = countOf(details["text_tokens"]);
  const audio = countOf(details["audio_tokens"]);
  const image = countOf(details["image_tokens"]);
  if (reasoning !== undefined) usage.reasoningTokens = reasoning;
  if (text !== undefined) usage.outputTextTokens = text;
  if (audio !== undefined) usage.outputAudioTokens = audio;
  if (image !== undefined) usage.outputImageTokens = image;
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

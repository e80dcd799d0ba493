/** Finds model, usage and service tier in answers and stream events of the Messages API. */
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";

/**
 * Merges what an answer, or the message of an event, reports. Counts in a stream are running totals: a later count
 * replaces an earlier one, an absent one keeps it.
 * @returns true when it has added something
 */
export function learnFacts(answer: JsonObject, facts: Facts): boolean {
  const model = stringOf(answer["model"]);
  if (model !== undefined) facts.model = model;
  const reported = objectOf(answer["usage"]);
  if (reported === undefined) return model !== undefined;
  const tier = stringOf(reported["service_tier"]);
  if (tier !== undefined) facts.serviceTier = tier;
  facts.usage = readUsage(reported, facts.usage);
  return true;
}

/** Merges one event of a stream. @returns true when it has added something */
export function learnFromEvent(event: JsonObject, facts: Facts): boolean {
  switch (event["type"]) {
    case "message_start": {
      const message = objectOf(event["message"]);
      facts.hasRunningUsage = true;
      return message !== undefined && learnFacts(message, facts);
    }
    case "message_delta":
      if (objectOf(event["usage"]) !== undefined) facts.hasRunningUsage = false;
      return learnFacts(event, facts);
    default:
      return false;
  }
}

/** Adds cached tokens to the input, which the format counts apart. @param before counts of earlier events */
function readUsage(reported: JsonObject, before: Usage | undefined): Usage {
  const fresh = countOf(reported["input_tokens"]) ?? before?.providerInputTokens ?? 0;
  const read = countOf(reported["cache_read_input_tokens"]) ?? before?.cachedInputTokens;
  const written = countOf(reported["cache_creation_input_tokens"]) ?? before?.cacheCreationInputTokens;
  return {
    inputTokens: fresh + (read ?? 0) + (written ?? 0),
    outputTokens: countOf(reported["output_tokens"]) ?? before?.outputTokens ?? 0,
    providerInputTokens: fresh,
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(written === undefined ? {} : { cacheCreationInputTokens: written }),
  };
}

/** Prints usage for a client: cached tokens apart from the input. */
export function printUsage(usage: Usage | undefined): JsonObject {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheCreationInputTokens = 0 } = usage ?? {};
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheCreationInputTokens),
    cache_creation_input_tokens: cacheCreationInputTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
  };
}

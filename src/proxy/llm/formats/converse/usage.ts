/** Finds usage and service tier in answers and stream events of Converse, which never name the model. */
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";

/** Merges what an answer or the `metadata` event of a stream reports. @returns true when it has added something */
export function learnFacts(answer: JsonObject, facts: Facts): boolean {
  const reported = objectOf(answer["usage"]);
  if (reported === undefined) return false;
  facts.usage = readUsage(reported);
  const tier = stringOf(objectOf(answer["serviceTier"])?.["type"]);
  if (tier !== undefined) facts.serviceTier = tier;
  return true;
}

/** Adds cached tokens to the input, which Converse counts apart. */
function readUsage(reported: JsonObject): Usage {
  const fresh = countOf(reported["inputTokens"]) ?? 0;
  const read = countOf(reported["cacheReadInputTokens"]);
  const written = countOf(reported["cacheWriteInputTokens"]);
  const total = countOf(reported["totalTokens"]);
  return {
    inputTokens: fresh + (read ?? 0) + (written ?? 0),
    outputTokens: countOf(reported["outputTokens"]) ?? 0,
    providerInputTokens: fresh,
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(written === undefined ? {} : { cacheCreationInputTokens: written }),
    ...(total === undefined ? {} : { providerTotalTokens: total }),
  };
}

/** Finds model, usage and service tier in answers of the Gemini API, and prints usage for its clients. */
import { countOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";

/** Merges what an answer or an event reports. @returns true when it has added something */
export function learnFacts(answer: JsonObject, facts: Facts): boolean {
  const model = stringOf(answer["modelVersion"]) ?? "";
  const metadata = objectOf(answer["usageMetadata"]);
  const usage = readUsage(metadata);
  const tier = stringOf(metadata?.["trafficType"]);
  const isNew = usage !== undefined || (model !== "" && model !== facts.model);
  if (model !== "") facts.model = model;
  if (usage !== undefined) facts.usage = usage;
  if (tier !== undefined && tier !== "TRAFFIC_TYPE_UNSPECIFIED") facts.serviceTier = tier;
  return isNew;
}

/**
 * Reads `usageMetadata`. The prompt includes cached tokens; tokens of tools that Google runs are counted beside it, and
 * thoughts beside the answer.
 * @returns undefined when it counts nothing
 */
function readUsage(metadata: JsonObject | undefined): Usage | undefined {
  if (metadata === undefined) return undefined;
  const prompt = countOf(metadata["promptTokenCount"]);
  const total = countOf(metadata["totalTokenCount"]);
  const answer = countOf(metadata["candidatesTokenCount"]);
  const thoughts = countOf(metadata["thoughtsTokenCount"]);
  if (prompt === undefined && total === undefined && answer === undefined) return undefined;
  const tools = countOf(metadata["toolUsePromptTokenCount"]) ?? 0;
  const usage: Usage = { inputTokens: (prompt ?? 0) + tools, outputTokens: (answer ?? 0) + (thoughts ?? 0) };
  // Every event of a stream reports usage, so there are no objects in between.
  const cached = countOf(metadata["cachedContentTokenCount"]);
  if (cached !== undefined) usage.cachedInputTokens = cached;
  if (thoughts !== undefined) usage.reasoningTokens = thoughts;
  if (prompt !== undefined) usage.providerInputTokens = prompt;
  if (total !== undefined) usage.providerTotalTokens = total;
  addModalities(metadata["promptTokensDetails"], "input", usage);
  addModalities(metadata["candidatesTokensDetails"], "output", usage);
  return usage;
}

/** Names of counts by modality, after the word for the direction. */
const MODALITIES: ReadonlyMap<Json | undefined, "Text" | "Audio" | "Image"> = new Map([
  ["TEXT", "Text"],
  ["AUDIO", "Audio"],
  ["IMAGE", "Image"],
]);

function addModalities(details: Json | undefined, direction: "input" | "output", usage: Usage): void {
  if (!Array.isArray(details)) return;
  for (const item of details) {
    const detail = objectOf(item);
    const modality = MODALITIES.get(detail?.["modality"]);
    const count = countOf(detail?.["tokenCount"]);
    if (modality !== undefined && count !== undefined) usage[`${direction}${modality}Tokens`] = count;
  }
}

export function printUsage(usage: Usage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage;
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: Math.max(0, outputTokens - (reasoningTokens ?? 0)),
    totalTokenCount: inputTokens + outputTokens,
    ...(cachedInputTokens === undefined ? {} : { cachedContentTokenCount: cachedInputTokens }),
    ...(reasoningTokens === undefined ? {} : { thoughtsTokenCount: reasoningTokens }),
  };
}

/** Prints the settings of a conversation as `generationConfig`. print-request.ts uses it. */
import type { Conversation, ReasoningSettings } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { budgetOf, effortOf } from "../../conversation/reasoning.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import { generationOf } from "./generation.ts";
import { printSchema } from "./print-schema.ts";

/** @param thinkingConfig as the client wrote it in the words of this API; wins over what other settings say */
export function printGenerationConfig(
  { model, sampling, reasoning, output }: Conversation,
  thinkingConfig: Json | undefined,
  losses: Losses,
): JsonObject {
  const config: JsonObject = {};
  const known: JsonObject = {
    maxOutputTokens: sampling.maxTokens,
    temperature: sampling.temperature,
    topP: sampling.topP,
    topK: sampling.topK,
    stopSequences: sampling.stop === undefined ? undefined : [...sampling.stop],
    seed: sampling.seed,
    presencePenalty: sampling.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty,
    candidateCount: sampling.choices,
  };
  for (const [name, value] of Object.entries(known)) if (value !== undefined) config[name] = value;
  if (output !== undefined) {
    config["responseMimeType"] = "application/json";
    if (output.schema !== undefined) config["responseSchema"] = printSchema(output.schema);
  }
  if (thinkingConfig !== undefined) config["thinkingConfig"] = thinkingConfig;
  else if (reasoning !== undefined) {
    const thinking = printThinking(reasoning, model);
    if (thinking === undefined) losses.add("reasoning_effort");
    else config["thinkingConfig"] = thinking;
  }
  return config;
}

/** @returns undefined for models of a generation that does not think */
function printThinking(reasoning: ReasoningSettings, model: string): JsonObject | undefined {
  const generation = generationOf(model);
  const includeThoughts = reasoning.isEnabled && reasoning.effort !== "none" && reasoning.display !== "omitted";
  if (generation > 0 && generation < 2.5) return undefined;
  if (generation >= 3) return { ...printLevel(reasoning, model), includeThoughts };
  if (reasoning.isAdaptive === true) return { thinkingBudget: -1, includeThoughts };
  const thinkingBudget = budgetOf(reasoning);
  if (thinkingBudget !== undefined) return { thinkingBudget, includeThoughts };
  // The largest model of this generation always thinks, with at least 128 tokens.
  return { thinkingBudget: /-pro(?:$|-)/.test(model) ? 128 : 0, includeThoughts };
}

/** Thinking cannot be switched off from generation 3 on; the largest models have no level below `low`. */
function printLevel(reasoning: ReasoningSettings, model: string): JsonObject {
  if (reasoning.isAdaptive === true && reasoning.effort === undefined && reasoning.budgetTokens === undefined)
    return {};
  const effort = effortOf(reasoning);
  switch (effort) {
    case "none":
    case "minimal":
      return { thinkingLevel: /-pro(?:$|-)/.test(model) ? "low" : "minimal" };
    case "low":
    case "medium":
      return { thinkingLevel: effort };
    default:
      return { thinkingLevel: "high" };
  }
}

/** Translates `promptCaching` of an `ai` block. */
import type { PromptCaching } from "../../../../../generated/types/ai.ts";
import type { AiFields } from "./ai-field.ts";

const DEFAULT_MIN_TOKENS = 1024;

export function translatePromptCaching({
  cacheSystem = true,
  cacheMessages = true,
  cacheTools = false,
  minTokens = DEFAULT_MIN_TOKENS,
  cacheMessageOffset = 0,
}: PromptCaching): AiFields {
  return { promptCaching: { cacheSystem, cacheMessages, cacheTools, minTokens, messageOffset: cacheMessageOffset } };
}

/**
 * Translates `prompt` of an `ai` block, and its other name `promptEnrichment`. Roles become lower case, as the
 * providers want them.
 */
import type { PromptEnrichment, PromptMessage } from "../../../../../generated/types/ai.ts";
import type { AiFields } from "./ai-field.ts";

export function translatePrompt({ prepend = [], append = [] }: PromptEnrichment): AiFields {
  if (prepend.length === 0 && append.length === 0) return {};
  return { prompt: { prepend: prepend.map(translateMessage), append: append.map(translateMessage) } };
}

function translateMessage({ role, content }: PromptMessage): PromptMessage {
  return { role: role.toLowerCase(), content };
}

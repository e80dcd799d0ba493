/** Translates `modelAliases` of an `ai` block. */
import type { AiFields } from "./ai-field.ts";

export function translateModelAliases(aliases: Readonly<Record<string, string>>): AiFields {
  // Sorted, because equal content must encode to equal bytes.
  const entries = Object.entries(aliases).sort(([a], [b]) => (a < b ? -1 : 1));
  return { modelAliases: Object.fromEntries(entries) };
}

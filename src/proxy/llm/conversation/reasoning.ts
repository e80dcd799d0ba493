/**
 * Converts between the two ways to say how much a model may think: an effort, and a budget in tokens
 * (docs/llm.md, "Reasoning").
 */
import type { ReasoningSettings } from "./conversation.ts";

const DEFAULT_EFFORT = "high";

const EFFORT_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16384,
};

/** Returns the tokens to think with; undefined when thinking is off. */
export function budgetOf({ isEnabled, budgetTokens, effort = DEFAULT_EFFORT }: ReasoningSettings): number | undefined {
  if (!isEnabled || effort === "none") return undefined;
  return budgetTokens ?? (Object.hasOwn(EFFORT_TOKENS, effort) ? EFFORT_TOKENS[effort] : undefined);
}

/** Returns the effort; `none` when thinking is off. */
export function effortOf({ isEnabled, budgetTokens, effort }: ReasoningSettings): string {
  if (!isEnabled) return "none";
  if (effort !== undefined) return effort;
  if (budgetTokens === undefined) return DEFAULT_EFFORT;
  if (budgetTokens < 2048) return "low";
  if (budgetTokens < 4096) return "medium";
  if (budgetTokens < 8192) return "high";
  return budgetTokens < 16384 ? "xhigh" : "max";
}

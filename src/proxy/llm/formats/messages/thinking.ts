/**
 * How much a Claude model may think, for Messages and Converse: adaptive models take an effort, others a budget in
 * tokens. With thinking on, models refuse sampling settings and a forced choice of tools.
 */
import { budgetOf, effortOf } from "../../conversation/reasoning.ts";
import type { Conversation, Part, ReasoningSettings, Turn } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { refusesSampling, thinksAdaptively } from "./model.ts";

/** The smallest thinking budget that providers accept. */
const MIN_BUDGET_TOKENS = 1024;

export interface Thinking {
  readonly thinking?: JsonObject;
  /** `output_config.effort`. */
  readonly effort?: string;
}

interface ThinkingContext {
  readonly model: string;
  readonly tags: ReadonlySet<string>;
  readonly maxTokens: number;
  readonly turns: readonly Turn[];
  readonly losses: Losses;
}

/** Returns nothing when the model does not think. */
export function printThinking(reasoning: ReasoningSettings | undefined, context: ThinkingContext): Thinking {
  if (reasoning === undefined) return {};
  const { model, tags, maxTokens } = context;
  if (!reasoning.isEnabled || reasoning.effort === "none") return {};
  if (reasoning.isAdaptive === true || thinksAdaptively(model, tags)) return adaptive(reasoning);
  const asked = budgetOf(reasoning);
  if (asked === undefined || asked < MIN_BUDGET_TOKENS || maxTokens <= MIN_BUDGET_TOKENS) return {};
  if (lacksThought(context.turns)) {
    context.losses.add("thinking");
    return {};
  }
  return { thinking: { type: "enabled", budget_tokens: Math.min(asked, maxTokens - 1) } };
}

/**
 * Whether the request ends with results of calls whose turns have no thought of this vendor, because another model made
 * them or the client left it out. A model with a budget refuses to think then; an adaptive one does not insist.
 */
function lacksThought(turns: readonly Turn[]): boolean {
  let isLoop = false;
  for (const { role, parts } of turns.toReversed()) {
    const isLinked = parts.some(({ kind }) => kind === (role === "user" ? "result" : "call"));
    if (!isLinked) return isLoop;
    if (role === "assistant" && parts.some(isOwnThought)) return false;
    isLoop = true;
  }
  return isLoop;
}

function isOwnThought(part: Part): boolean {
  if (part.kind === "redacted") return part.data.vendor === "anthropic";
  return part.kind === "reasoning" && part.signature?.vendor === "anthropic";
}

const EFFORTS: ReadonlyMap<string, string> = new Map([
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "xhigh"],
  ["max", "max"],
]);

function adaptive(reasoning: ReasoningSettings): Thinking {
  const effort = EFFORTS.get(effortOf(reasoning));
  const thinking = { type: "adaptive", display: reasoning.display === "omitted" ? "omitted" : "summarized" };
  return effort === undefined ? { thinking } : { thinking, effort };
}

/** Returns the sampling settings that the model accepts; the others are named as losses. */
export function printSampling(
  { model, sampling }: Conversation,
  { isThinking, tags, losses }: { isThinking: boolean; tags: ReadonlySet<string>; losses: Losses },
): Record<"temperature" | "topP" | "topK", number | undefined> {
  const { temperature, topP, topK } = sampling;
  const given = { temperature, topP, topK };
  if (!isThinking && !refusesSampling(model, tags)) return given;
  const names = { temperature: "temperature", topP: "top_p", topK: "top_k" } as const;
  for (const key of ["temperature", "topP", "topK"] as const) if (given[key] !== undefined) losses.add(names[key]);
  return { temperature: undefined, topP: undefined, topK: undefined };
}

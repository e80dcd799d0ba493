/**
 * `promptCaching` of an `ai` block: marks the ends of prefixes that Bedrock should cache, in a conversation that is about
 * to be printed for Converse. Clients of the Messages API mark their own prefixes.
 */
import type { PromptCaching } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { FormatName } from "../formats/chat-format.ts";
import { canCache } from "../formats/converse/model.ts";

export interface MarkCache {
  /** @param client format of the client @param provider format that the conversation is printed in */
  (conversation: Conversation, client: FormatName, provider: FormatName): void;
}

export function compilePromptCaching(settings: PromptCaching): MarkCache {
  return function markCache(conversation, client, provider) {
    const isMarked = provider === "Converse" && (client === "Completions" || client === "Responses");
    if (!isMarked || !canCache(conversation.model)) return;
    if (settings.cacheSystem) markSystem(conversation, settings.minTokens);
    if (settings.cacheMessages) markMessages(conversation, settings.messageOffset);
    if (settings.cacheTools) markTools(conversation);
  };
}

function markSystem({ system }: Conversation, minTokens: number): void {
  const last = system.at(-1);
  if (last === undefined) return;
  let words = 0;
  for (const { text } of system) words += text.match(/\S+/g)?.length ?? 0;
  // A word has about 1.3 tokens. The product of whole numbers is exact, and 1.3 is not.
  if (Math.floor((words * 13) / 10) >= minTokens) last.cache ??= {};
}

/** The last message is new in each request, so the prefix to keep ends before it. */
function markMessages({ turns }: Conversation, offset: number): void {
  if (turns.length < 2) return;
  const marked = turns[Math.max(0, turns.length - 2 - offset)];
  const last = marked?.parts.findLast(({ kind }) => kind !== "reasoning" && kind !== "redacted");
  if (last !== undefined) last.cache ??= {};
}

function markTools({ tools }: Conversation): void {
  const last = tools.findLast(({ kind }) => kind === "function");
  if (last?.kind === "function") last.cache ??= {};
}

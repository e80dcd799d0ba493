/** Names of tools in a conversation, for formats that do not allow all of them (allowed-names.ts). */
import type { Conversation, Part } from "../../conversation/conversation.ts";
import { readAnswerText } from "../../shared/answer-fields.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { ReadContext } from "../chat-format.ts";
import type { AllowedNames } from "./allowed-names.ts";

/** Returns the names of tools that are offered, demanded or called. */
export function toolNamesIn({ tools, toolChoice, turns }: Conversation): string[] {
  const offered = tools.flatMap((tool) => (tool.kind === "function" ? [tool.name] : []));
  const called = turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === "call" ? [part.name] : [])));
  return [...offered, ...(toolChoice?.kind === "required" ? (toolChoice.names ?? []) : []), ...called];
}

/** Returns the conversation with names that are allowed. */
export function renameTools(conversation: Conversation, names: AllowedNames): Conversation {
  const { tools, toolChoice, turns } = conversation;
  const rename = (part: Part): Part => (part.kind === "call" ? { ...part, name: names.allowed(part.name) } : part);
  return {
    ...conversation,
    tools: tools.map((tool) => (tool.kind === "function" ? { ...tool, name: names.allowed(tool.name) } : tool)),
    turns: turns.map(({ role, parts }) => ({ role, parts: parts.map(rename) })),
    ...(toolChoice?.kind === "required" && toolChoice.names !== undefined
      ? { toolChoice: { ...toolChoice, names: toolChoice.names.map((name) => names.allowed(name)) } }
      : {}),
  };
}

/** Returns the client's own name of a tool that an answer names. */
export function originalName(made: JsonObject, toolNames: ReadContext["toolNames"]): string {
  const name = readAnswerText(made["name"], "name");
  return toolNames?.get(name) ?? name;
}

/** Prints an answer as a response object. Texts that follow each other are the contents of one message. */
import type { Answer } from "../../conversation/answer.ts";
import type { Citation, Part } from "../../conversation/conversation.ts";
import { printSignature } from "../../conversation/signature.ts";
import { objectOf, type JsonObject } from "../../shared/json.ts";
import type { AnswerContext } from "../chat-format.ts";
import {
  contextOfResponse,
  identifierOf,
  messageItem,
  outputText,
  printResponse,
  reasoningItem,
  refusalText,
  statusOf,
} from "./response-object.ts";
import { ClientTools } from "./tools.ts";

export function printAnswer({ id, model, choices, facts }: Answer, context: AnswerContext): JsonObject {
  const [choice] = choices;
  const { parts, stop } = choice ?? { parts: [], stop: { reason: "end" } as const };
  const identifier = identifierOf(id);
  const output = printItems(parts, {
    identifier,
    status: statusOf(stop.reason),
    tools: new ClientTools(context.request),
  });
  const { usage, serviceTier } = facts;
  return printResponse({ id: identifier, model, output, stop, usage, serviceTier }, contextOfResponse(context));
}

interface ItemContext {
  readonly identifier: string;
  /** Status of the last message. */
  readonly status: string;
  readonly tools: ClientTools;
}

function printItems(parts: readonly Part[], { identifier, status, tools }: ItemContext): JsonObject[] {
  const items: JsonObject[] = [];
  let content: JsonObject[] = [];
  const nextId = (): string => itemIdentifier(identifier, items.length);
  const closeMessage = (state: string): void => {
    if (content.length > 0) items.push(messageItem(nextId(), content, state));
    content = [];
  };
  for (const part of parts)
    if (part.kind === "text") content.push(outputText(part.text, printAnnotations(part.citations ?? [])));
    else if (part.kind === "refusal") content.push(refusalText(part.text));
    else {
      closeMessage("completed");
      items.push(...printItem(part, nextId(), tools));
    }
  closeMessage(status);
  return items;
}

function printItem(part: Part, itemId: string, tools: ClientTools): JsonObject[] {
  switch (part.kind) {
    case "reasoning":
      return [
        reasoningItem(itemId, part.text, part.signature === undefined ? undefined : printSignature(part.signature)),
      ];
    case "redacted":
      return [reasoningItem(itemId, undefined, printSignature(part.data))];
    case "call":
      // Clients parse the arguments of every call.
      return [tools.printCall(part, part.arguments === "" ? "{}" : part.arguments, itemId, "completed")];
    default:
      return [];
  }
}

/** Returns the identifier of an item, without the prefix that names its type. */
export function itemIdentifier(identifier: string, index: number): string {
  return `${identifier}${index.toString(16).padStart(4, "0")}`;
}

/** Prints the citations that OpenAI's vocabulary can express; chat completions nest them one level deeper. */
export function printAnnotations(citations: readonly Citation[]): JsonObject[] {
  return citations.flatMap(({ vendor, value }) => {
    if (vendor !== "openai") return [];
    const nested = objectOf(value["url_citation"]);
    return [nested === undefined ? value : { type: "url_citation", ...nested }];
  });
}

/**
 * Finds model, usage and service tier in an answer whose format is not known, or in an event of it, by the members that
 * each format has. A payload may stand below `response`. The operation `Detect` uses it.
 */
import { completions } from "../formats/completions/index.ts";
import { converse } from "../formats/converse/index.ts";
import { gemini } from "../formats/gemini/index.ts";
import { messages } from "../formats/messages/index.ts";
import { responses } from "../formats/responses/index.ts";
import type { ChatFormat } from "../formats/chat-format.ts";
import { objectOf, type JsonObject } from "../shared/json.ts";
import type { Facts } from "../shared/usage.ts";

/** Merges what an answer or an event reports. @returns true when it has added something */
export function learnDetected(value: JsonObject, facts: Facts): boolean {
  return formatOf(value).stream(value, facts);
}

/** Returns what a whole answer reports. */
export function detectFacts(answer: JsonObject): Facts {
  const inner = objectOf(answer["response"]);
  return inner === undefined ? formatOf(answer).usage(answer) : detectFacts(inner);
}

function formatOf(value: JsonObject): Pick<ChatFormat, "stream" | "usage"> {
  const type = value["type"];
  if (type === "message" || type === "message_start" || type === "message_delta") return messages;
  if (value["usageMetadata"] !== undefined || value["candidates"] !== undefined) return gemini;
  const inner = objectOf(value["response"]);
  if (inner !== undefined) return inner["usageMetadata"] === undefined ? responses : below(inner, gemini);
  const usage = objectOf(value["usage"]) ?? {};
  if (usage["inputTokens"] !== undefined) return converse;
  if (usage["cache_read_input_tokens"] !== undefined && usage["prompt_tokens"] === undefined) return messages;
  return usage["input_tokens"] === undefined ? completions : below(value, { ...responses, stream: learnResponse });
}

/** Reads the given object in place of the one that holds it. */
function below(inner: JsonObject, format: Pick<ChatFormat, "stream" | "usage">): Pick<ChatFormat, "stream" | "usage"> {
  return { usage: () => format.usage(inner), stream: (_outer, facts) => format.stream(inner, facts) };
}

/** An event without `response` holds the members of the response itself. */
function learnResponse(event: JsonObject, facts: Facts): boolean {
  return responses.stream({ response: event }, facts);
}

/** Prints an answer as a chat completion. */
import type { Answer, Choice, StopReason } from "../../conversation/answer.ts";
import type { CallPart, Part } from "../../conversation/conversation.ts";
import { unwrapFreeText } from "../../conversation/free-text.ts";
import { printCallId } from "../../conversation/call-id.ts";
import { printSignature } from "../../conversation/signature.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { AnswerContext } from "../chat-format.ts";
import { customToolNames } from "./custom-tools.ts";
import { printUsage } from "./usage.ts";

export function printAnswer({ id, model, choices, facts }: Answer, { createdAt, request }: AnswerContext): JsonObject {
  const customTools = customToolNames(request);
  return {
    id,
    object: "chat.completion",
    created: createdAt,
    model,
    choices: choices.map((choice) => printChoice(choice, customTools)),
    ...(facts.usage === undefined ? {} : { usage: printUsage(facts.usage) }),
    ...(facts.serviceTier === undefined ? {} : { service_tier: facts.serviceTier }),
  };
}

function printChoice({ index, parts, stop }: Choice, customTools: ReadonlySet<string>): JsonObject {
  return { index, message: printMessage(parts, customTools), logprobs: null, finish_reason: finishReason(stop.reason) };
}

function printMessage(parts: readonly Part[], customTools: ReadonlySet<string>): JsonObject {
  let text = "";
  let thoughts = "";
  let refusal = "";
  const blocks: JsonObject[] = [];
  const calls: JsonObject[] = [];
  for (const part of parts)
    switch (part.kind) {
      case "text":
        text += part.text;
        break;
      case "refusal":
        refusal += part.text;
        break;
      case "reasoning":
        thoughts += part.text;
        if (part.signature !== undefined) blocks.push(thinkingBlock(part.text, printSignature(part.signature)));
        break;
      case "redacted":
        blocks.push(redactedBlock(printSignature(part.data)));
        break;
      case "call":
        calls.push(printCall(part, customTools));
        break;
      default:
    }
  const message: JsonObject = { role: "assistant", content: text === "" && calls.length > 0 ? null : text };
  if (refusal !== "") message["refusal"] = refusal;
  if (thoughts !== "") message["reasoning_content"] = thoughts;
  if (blocks.length > 0) message["thinking_blocks"] = blocks;
  if (calls.length > 0) message["tool_calls"] = calls;
  return message;
}

/** Thoughts that clients send back unchanged, in the form that other gateways made known. */
export function thinkingBlock(thinking: string, signature: string): JsonObject {
  return { type: "thinking", thinking, signature };
}

export function redactedBlock(data: string): JsonObject {
  return { type: "redacted_thinking", data };
}

function printCall(call: CallPart, customTools: ReadonlySet<string>): JsonObject {
  const { name, arguments: text, isFreeText } = call;
  const id = printCallId(call);
  if (isFreeText === true) return { id, type: "custom", custom: { name, input: text } };
  if (customTools.has(name)) return { id, type: "custom", custom: { name, input: unwrapFreeText(text) } };
  // Clients parse the arguments of every call.
  return { id, type: "function", function: { name, arguments: text === "" ? "{}" : text } };
}

export function finishReason(reason: StopReason): string {
  switch (reason) {
    case "length":
    case "context":
      return "length";
    case "calls":
      return "tool_calls";
    case "refusal":
      return "content_filter";
    case "end":
    case "stop_sequence":
    case "pause":
      return "stop";
  }
}

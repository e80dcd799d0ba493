/** Prints an answer in the form of the Messages API. */
import { argumentsObject } from "../../conversation/arguments.ts";
import type { Answer, StopReason } from "../../conversation/answer.ts";
import type { Part, Signature } from "../../conversation/conversation.ts";
import { printCallId } from "../../conversation/call-id.ts";
import { printSignature } from "../../conversation/signature.ts";
import type { JsonObject } from "../../shared/json.ts";
import { printUsage } from "./usage.ts";

export function printAnswer({ id, model, choices, facts }: Answer): JsonObject {
  const [choice] = choices;
  const tier = facts.serviceTier;
  return {
    id: messageId(id),
    type: "message",
    role: "assistant",
    model,
    content: (choice?.parts ?? []).flatMap(printPart),
    stop_reason: printReason(choice?.stop.reason ?? "end"),
    stop_sequence: choice?.stop.sequence ?? null,
    usage: { ...printUsage(facts.usage), ...(tier === undefined ? {} : { service_tier: tier }) },
  };
}

/** Clients know messages by this prefix. */
export function messageId(id: string): string {
  return id.startsWith("msg_") ? id : `msg_${id}`;
}

function printPart(part: Part): JsonObject[] {
  switch (part.kind) {
    case "text":
      // A signature of a text has no member of its own, and goes in front as an empty thought.
      return [...printSigned(part.signature), ...(part.text === "" ? [] : [printText(part)])];
    case "refusal":
      return part.text === "" ? [] : [{ type: "text", text: part.text }];
    case "reasoning":
      return [printThinking(part.text, part.signature)];
    case "redacted":
      return [{ type: "redacted_thinking", data: printSignature(part.data) }];
    case "call": {
      const input = part.isFreeText === true ? { input: part.arguments } : (argumentsObject(part.arguments) ?? {});
      return [...printSigned(part.signature), { type: "tool_use", id: printCallId(part), name: part.name, input }];
    }
    case "vendor":
      return part.vendor === "anthropic" ? [part.value] : [];
    default:
      return [];
  }
}

function printText({ text, citations = [] }: Part & { kind: "text" }): JsonObject {
  const known = citations.filter(({ vendor }) => vendor === "anthropic").map(({ value }) => value);
  return { type: "text", text, ...(known.length === 0 ? {} : { citations: known }) };
}

function printSigned(signature: Signature | undefined): JsonObject[] {
  return signature === undefined ? [] : [printThinking("", signature)];
}

function printThinking(thinking: string, signature: Signature | undefined): JsonObject {
  return { type: "thinking", thinking, signature: signature === undefined ? "" : printSignature(signature) };
}

export function printReason(reason: StopReason): string {
  switch (reason) {
    case "end":
      return "end_turn";
    case "stop_sequence":
      return "stop_sequence";
    case "length":
      return "max_tokens";
    case "context":
      return "model_context_window_exceeded";
    case "calls":
      return "tool_use";
    case "refusal":
      return "refusal";
    case "pause":
      return "pause_turn";
  }
}

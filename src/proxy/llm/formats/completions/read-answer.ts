/** Reads a chat completion of a provider into an answer. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Choice, StopReason } from "../../conversation/answer.ts";
import type { CallPart, Part } from "../../conversation/conversation.ts";
import { readAnswerObject, readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext } from "../chat-format.ts";
import { originalName } from "../shared/tool-names.ts";
import { readThoughtSignature } from "./thought-signature.ts";
import { learnFacts } from "./usage.ts";

export function readAnswer(body: JsonObject, { model, toolNames }: ReadContext): Answer {
  if (!Array.isArray(body["choices"]))
    throw new ProxyError("llm_response_invalid", { detail: "a chat completion without a list of choices" });
  const facts: Facts = {};
  learnFacts(body, facts);
  const choices = readAnswerObjects(body["choices"], "choices").map((each, at) => readChoice(each, at, toolNames));
  return { id: stringOf(body["id"]) ?? "", model: facts.model ?? model, choices, facts };
}

function readChoice(choice: JsonObject, at: number, toolNames: ReadContext["toolNames"]): Choice {
  const parts = readParts(readAnswerObject(choice["message"], "message") ?? {}, toolNames);
  const hasCall = parts.some(({ kind }) => kind === "call");
  return {
    index: countOf(choice["index"]) ?? at,
    parts,
    stop: { reason: stopReason(choice["finish_reason"], hasCall) },
  };
}

function readParts(message: JsonObject, toolNames: ReadContext["toolNames"]): Part[] {
  const parts: Part[] = [];
  const thought = reasoningText(message);
  if (thought !== "") parts.push({ kind: "reasoning", text: thought });
  const text = textOf(message["content"]);
  if (text !== "") parts.push({ kind: "text", text });
  const refusal = readAnswerText(message["refusal"], "refusal");
  if (refusal !== "") parts.push({ kind: "refusal", text: refusal });
  const calls = readAnswerObjects(message["tool_calls"], "tool_calls");
  const legacy = objectOf(message["function_call"]);
  if (calls.length === 0 && legacy !== undefined) calls.push({ function: legacy });
  calls.forEach((call, at) => parts.push(readCall(call, at, toolNames)));
  return parts;
}

/** Returns the thoughts of a message or of a delta, which several servers of this format name differently. */
export function reasoningText(message: JsonObject): string {
  return readAnswerText(message["reasoning_content"] ?? message["reasoning"], "reasoning_content");
}

/** Returns the text of a content, which some servers write as a list of parts. */
export function textOf(content: Json | undefined): string {
  if (!Array.isArray(content)) return readAnswerText(content, "content");
  return readAnswerObjects(content, "content")
    .map((item) => readAnswerText(item["text"], "text"))
    .join("");
}

function readCall(call: JsonObject, at: number, toolNames: ReadContext["toolNames"]): CallPart {
  const custom = readAnswerObject(call["custom"], "custom");
  const made = custom ?? readAnswerObject(call["function"], "function") ?? {};
  return {
    kind: "call",
    id: callId(call, at),
    name: originalName(made, toolNames),
    arguments: stringOf(made[custom === undefined ? "arguments" : "input"]) ?? "",
    ...(custom === undefined ? {} : { isFreeText: true }),
    ...readThoughtSignature(call),
  };
}

/** Some servers give their calls no identifier, but every client needs one to answer them. */
export function callId(call: JsonObject, at: number): string {
  const id = stringOf(call["id"]) ?? "";
  return id === "" ? `tool_call_${at}` : id;
}

/** OpenAI ends an answer with `stop` when the client has forced the call, and many servers of this format always do. */
export function stopReason(reason: Json | undefined, hasCall: boolean): StopReason {
  switch (reason) {
    case "length":
      return "length";
    case "tool_calls":
    case "function_call":
      return "calls";
    case "content_filter":
      return "refusal";
    default:
      return hasCall ? "calls" : "end";
  }
}

/** Reads a response object of a provider into an answer. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Stop } from "../../conversation/answer.ts";
import type { CallPart, Citation, Part } from "../../conversation/conversation.ts";
import { readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext } from "../chat-format.ts";
import { readErrorObject } from "../shared/read-error.ts";
import { originalName } from "../shared/tool-names.ts";
import { learnResponse } from "./usage.ts";

/** A response that failed is no answer: OpenAI reports most of its errors with a status, and few in this way. */
export function readAnswer(body: JsonObject, { model, toolNames }: ReadContext): Answer {
  const { output, status } = body;
  if (status === "failed" || status === "cancelled") {
    const { message } = readErrorObject(body);
    throw new ProxyError("llm_response_invalid", {
      detail: `the response has ${status}${message === "" ? "" : `: ${message}`}`,
    });
  }
  if (!Array.isArray(output))
    throw new ProxyError("llm_response_invalid", { detail: "a response without a list of output items" });
  const facts: Facts = {};
  learnResponse(body, facts);
  const parts = readAnswerObjects(output, "output").flatMap((item) => readItem(item, toolNames));
  const choice = { index: 0, parts, stop: stopOf(body, parts) };
  return { id: stringOf(body["id"]) ?? "", model: facts.model ?? model, choices: [choice], facts };
}

function readItem(item: JsonObject, toolNames: ReadContext["toolNames"]): Part[] {
  switch (item["type"]) {
    case "message":
      return readAnswerObjects(item["content"], "content").flatMap(readContent);
    case "function_call":
    case "custom_tool_call":
      return [readCall(item, toolNames)];
    case "reasoning":
      return [readReasoning(item)];
    default: {
      const name = stringOf(item["type"]);
      return name === undefined ? [] : [{ kind: "vendor", vendor: "openai", name, value: item }];
    }
  }
}

function readContent(part: JsonObject): Part[] {
  if (part["type"] === "refusal") return [{ kind: "refusal", text: readAnswerText(part["refusal"], "refusal") }];
  const text = readAnswerText(part["text"], "text");
  if (text === "") return [];
  const citations = listOf(part["annotations"]).flatMap(readCitation);
  return [{ kind: "text", text, ...(citations.length === 0 ? {} : { citations }) }];
}

export function readCitation(annotation: Json | undefined): Citation[] {
  const value = objectOf(annotation);
  return value === undefined ? [] : [{ vendor: "openai", value }];
}

function readCall(item: JsonObject, toolNames: ReadContext["toolNames"]): CallPart {
  const isFreeText = item["type"] === "custom_tool_call";
  return {
    kind: "call",
    ...readCallHead(item, toolNames),
    arguments: readAnswerText(item[isFreeText ? "input" : "arguments"], "arguments"),
    ...(isFreeText ? { isFreeText } : {}),
  };
}

/** Returns what is known of a call before its arguments. */
export function readCallHead(item: JsonObject, toolNames: ReadContext["toolNames"]): Pick<CallPart, "id" | "name"> {
  const id = stringOf(item["call_id"]) ?? stringOf(item["id"]) ?? "";
  return { id, name: originalName(item, toolNames) };
}

function readReasoning(item: JsonObject): Part {
  const thoughts = thoughtsOf(item["summary"]) || thoughtsOf(item["content"]);
  const signature = readSeal(item);
  const id = stringOf(item["id"]);
  return {
    kind: "reasoning",
    text: thoughts,
    ...(signature === undefined ? {} : { signature }),
    ...(id === undefined ? {} : { id }),
  };
}

/** Summaries and thoughts are lists of texts; clients of other formats get them as paragraphs. */
function thoughtsOf(parts: Json | undefined): string {
  return readAnswerObjects(parts, "summary")
    .map((part) => readAnswerText(part["text"], "text"))
    .join("\n\n");
}

export function readSeal(item: JsonObject): { readonly vendor: "openai"; readonly value: string } | undefined {
  const sealed = stringOf(item["encrypted_content"]);
  return sealed === undefined || sealed === "" ? undefined : { vendor: "openai", value: sealed };
}

function stopOf(response: JsonObject, parts: readonly Part[]): Stop {
  return readStop(response, {
    hasCalls: parts.some(({ kind }) => kind === "call"),
    hasRefused: parts.some(({ kind }) => kind === "refusal"),
  });
}

/** Returns why a response ended. Only one that is incomplete names a reason. */
export function readStop(
  response: JsonObject,
  seen: { readonly hasCalls: boolean; readonly hasRefused: boolean },
): Stop {
  if (response["status"] === "incomplete") {
    const reason = stringOf(objectOf(response["incomplete_details"])?.["reason"]) ?? "";
    if (/max|token/.test(reason)) return { reason: "length" };
    return { reason: reason.includes("context") ? "context" : "refusal" };
  }
  if (seen.hasCalls) return { reason: "calls" };
  return { reason: seen.hasRefused ? "refusal" : "end" };
}

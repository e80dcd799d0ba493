/** Reads an answer of Converse. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Stop, StopReason } from "../../conversation/answer.ts";
import type { Part } from "../../conversation/conversation.ts";
import { readAnswerObject, readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext } from "../chat-format.ts";
import { readCitation } from "./citations.ts";
import { makeId } from "./id.ts";
import { learnFacts } from "./usage.ts";

export function readAnswer(body: JsonObject, context: ReadContext): Answer {
  const content = objectOf(objectOf(body["output"])?.["message"])?.["content"];
  if (!Array.isArray(content))
    throw new ProxyError("llm_response_invalid", { detail: "a Converse answer without a list of content" });
  const facts: Facts = {};
  learnFacts(body, facts);
  const parts = readAnswerObjects(content, "content").flatMap((block) => readBlock(block, context));
  const { model } = context;
  return { id: makeId(), model, choices: [{ index: 0, parts, stop: readStop(body["stopReason"]) }], facts };
}

/** A block has one member, which tells its kind. */
function readBlock(block: JsonObject, context: ReadContext): Part[] {
  if (block["text"] !== undefined) return [{ kind: "text", text: readAnswerText(block["text"], "text") }];
  const call = readAnswerObject(block["toolUse"], "toolUse");
  if (call !== undefined) return [readCall(call, context)];
  const reasoning = readAnswerObject(block["reasoningContent"], "reasoningContent");
  if (reasoning !== undefined) return readReasoning(reasoning);
  const cited = readAnswerObject(block["citationsContent"], "citationsContent");
  if (cited !== undefined) return [readCited(cited)];
  const image = objectOf(block["image"]);
  return image === undefined ? [] : readImage(image);
}

function readCall(call: JsonObject, { toolNames }: ReadContext): Part {
  const name = readAnswerText(call["name"], "name");
  return {
    kind: "call",
    id: stringOf(call["toolUseId"]) ?? "",
    name: toolNames?.get(name) ?? name,
    arguments: JSON.stringify(objectOf(call["input"]) ?? {}),
    ...(call["type"] === "server_tool_use" ? { isServerSide: true } : {}),
  };
}

function readReasoning(content: JsonObject): Part[] {
  const redacted = stringOf(content["redactedContent"]);
  if (redacted !== undefined) return [{ kind: "redacted", data: { vendor: "anthropic", value: redacted } }];
  const thought = readAnswerObject(content["reasoningText"], "reasoningText");
  if (thought === undefined) return [];
  const signature = stringOf(thought["signature"]) ?? "";
  return [
    {
      kind: "reasoning",
      text: readAnswerText(thought["text"], "text"),
      ...(signature === "" ? {} : { signature: { vendor: "anthropic", value: signature } }),
    },
  ];
}

function readCited(content: JsonObject): Part {
  const texts = readAnswerObjects(content["content"], "content").map((item) => readAnswerText(item["text"], "text"));
  const citations = listOf(content["citations"]).map((item) => readCitation(objectOf(item) ?? {}));
  return { kind: "text", text: texts.join(""), citations };
}

function readImage(image: JsonObject): Part[] {
  const data = stringOf(objectOf(image["source"])?.["bytes"]);
  const format = stringOf(image["format"]) ?? "png";
  return data === undefined ? [] : [{ kind: "image", source: { kind: "data", mediaType: `image/${format}`, data } }];
}

const REASONS: ReadonlyMap<Json | undefined, StopReason> = new Map<Json | undefined, StopReason>([
  ["end_turn", "end"],
  ["stop_sequence", "stop_sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "context"],
  ["tool_use", "calls"],
  ["content_filtered", "refusal"],
  ["guardrail_intervened", "refusal"],
]);

export function readStop(reason: Json | undefined): Stop {
  return { reason: REASONS.get(reason) ?? "end" };
}

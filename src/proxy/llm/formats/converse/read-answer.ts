/** Reads an answer of Converse. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Stop, StopReason } from "../../conversation/answer.ts";
import type { Part } from "../../conversation/conversation.ts";
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
  const parts = content.flatMap((item) => readBlock(objectOf(item) ?? {}, context));
  const { model } = context;
  return { id: makeId(), model, choices: [{ index: 0, parts, stop: readStop(body["stopReason"]) }], facts };
}

/** A block has one member, which tells its kind. */
function readBlock(block: JsonObject, context: ReadContext): Part[] {
  const text = stringOf(block["text"]);
  if (text !== undefined) return [{ kind: "text", text }];
  const call = objectOf(block["toolUse"]);
  if (call !== undefined) return [readCall(call, context)];
  const reasoning = objectOf(block["reasoningContent"]);
  if (reasoning !== undefined) return readReasoning(reasoning);
  const cited = objectOf(block["citationsContent"]);
  if (cited !== undefined) return [readCited(cited)];
  const image = objectOf(block["image"]);
  return image === undefined ? [] : readImage(image);
}

function readCall(call: JsonObject, { toolNames }: ReadContext): Part {
  const name = stringOf(call["name"]) ?? "";
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
  const thought = objectOf(content["reasoningText"]);
  if (thought === undefined) return [];
  const signature = stringOf(thought["signature"]) ?? "";
  return [
    {
      kind: "reasoning",
      text: stringOf(thought["text"]) ?? "",
      ...(signature === "" ? {} : { signature: { vendor: "anthropic", value: signature } }),
    },
  ];
}

function readCited(content: JsonObject): Part {
  const texts = listOf(content["content"]).map((item) => stringOf(objectOf(item)?.["text"]) ?? "");
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

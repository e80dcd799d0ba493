/** Reads an answer of the Messages API. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Stop, StopReason } from "../../conversation/answer.ts";
import type { Part } from "../../conversation/conversation.ts";
import { readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext } from "../chat-format.ts";
import { originalName } from "../shared/tool-names.ts";
import { learnFacts } from "./usage.ts";

export function readAnswer(body: JsonObject, { model, toolNames }: ReadContext): Answer {
  if (!Array.isArray(body["content"]))
    throw new ProxyError("llm_response_invalid", { detail: "a messages answer without a list of content" });
  const facts: Facts = {};
  learnFacts(body, facts);
  const parts = readAnswerObjects(body["content"], "content").flatMap((block) => readBlock(block, toolNames));
  return {
    id: stringOf(body["id"]) ?? "",
    model: facts.model ?? model,
    choices: [{ index: 0, parts, stop: readStopReason(body) }],
    facts,
  };
}

function readBlock(block: JsonObject, toolNames: ReadContext["toolNames"]): Part[] {
  switch (block["type"]) {
    case "text": {
      const citations = listOf(block["citations"]).map((item) => objectOf(item) ?? {});
      const cited = citations.map((value) => ({ vendor: "anthropic", value }) as const);
      return [
        {
          kind: "text",
          text: readAnswerText(block["text"], "text"),
          ...(cited.length === 0 ? {} : { citations: cited }),
        },
      ];
    }
    case "thinking": {
      const signature = stringOf(block["signature"]) ?? "";
      const text = readAnswerText(block["thinking"], "thinking");
      return [
        {
          kind: "reasoning",
          text,
          ...(signature === "" ? {} : { signature: { vendor: "anthropic", value: signature } }),
        },
      ];
    }
    case "redacted_thinking":
      return [{ kind: "redacted", data: { vendor: "anthropic", value: readAnswerText(block["data"], "data") } }];
    case "tool_use":
    case "server_tool_use":
      return [
        {
          kind: "call",
          id: stringOf(block["id"]) ?? "",
          name: originalName(block, toolNames),
          arguments: JSON.stringify(objectOf(block["input"]) ?? {}),
          ...(block["type"] === "server_tool_use" ? { isServerSide: true } : {}),
        },
      ];
    default:
      return [{ kind: "vendor", vendor: "anthropic", name: stringOf(block["type"]) ?? "", value: block }];
  }
}

export function readStopReason(message: JsonObject): Stop {
  const sequence = stringOf(message["stop_sequence"]);
  return { reason: stopReason(message["stop_reason"]), ...(sequence === undefined ? {} : { sequence }) };
}

const REASONS: ReadonlyMap<Json | undefined, StopReason> = new Map<Json | undefined, StopReason>([
  ["end_turn", "end"],
  ["stop_sequence", "stop_sequence"],
  ["pause_turn", "pause"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "context"],
  ["tool_use", "calls"],
  ["refusal", "refusal"],
]);

function stopReason(reason: Json | undefined): StopReason {
  return REASONS.get(reason) ?? "end";
}

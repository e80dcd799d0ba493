/** Converts a complete messages response to a chat completion. */
import { ProxyError } from "../../errors.ts";
import { countOf, listOf, objectOf, stringOf, type Json, type JsonObject } from "../json.ts";

export function convertResponse(answer: JsonObject, createdAt: number): JsonObject {
  if (!Array.isArray(answer["content"]))
    throw new ProxyError("response_invalid", { detail: "a messages answer without a list of content" });
  let text = "";
  let thinking = "";
  const toolCalls: Json[] = [];
  for (const item of listOf(answer["content"])) {
    const block = objectOf(item);
    if (block === undefined) continue;
    if (block["type"] === "text") text += stringOf(block["text"]) ?? "";
    else if (block["type"] === "thinking") thinking += stringOf(block["thinking"]) ?? "";
    else if (isToolUse(block)) toolCalls.push(toolCall(block));
  }
  const message: JsonObject = { role: "assistant", content: text === "" && toolCalls.length > 0 ? null : text };
  if (thinking !== "") message["reasoning_content"] = thinking;
  if (toolCalls.length > 0) message["tool_calls"] = toolCalls;
  const usage = objectOf(answer["usage"]);
  return {
    id: stringOf(answer["id"]) ?? "",
    object: "chat.completion",
    created: createdAt,
    model: stringOf(answer["model"]) ?? "",
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer["stop_reason"]) }],
    ...(usage === undefined ? {} : { usage: convertUsage(usage) }),
  };
}

export function isToolUse(block: JsonObject): boolean {
  return block["type"] === "tool_use" || block["type"] === "server_tool_use";
}

function toolCall(block: JsonObject): JsonObject {
  const input = JSON.stringify(block["input"] ?? {});
  return {
    id: stringOf(block["id"]) ?? "",
    type: "function",
    function: { name: stringOf(block["name"]) ?? "", arguments: input },
  };
}

export function finishReason(stopReason: Json | undefined): string {
  switch (stopReason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_use":
      return "tool_calls";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}

/** Adds cached tokens to the prompt: the messages format counts them separately, chat completions as part of it. */
export function convertUsage(usage: JsonObject): JsonObject {
  const read = countOf(usage["cache_read_input_tokens"]) ?? 0;
  const written = countOf(usage["cache_creation_input_tokens"]) ?? 0;
  const prompt = (countOf(usage["input_tokens"]) ?? 0) + read + written;
  const completion = countOf(usage["output_tokens"]) ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
  };
}

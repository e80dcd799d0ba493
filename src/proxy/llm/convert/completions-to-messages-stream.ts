/**
 * Converts a stream of messages events to chat completion chunks. Signatures, citations and pings have no counterpart.
 */
import { countOf, objectOf, stringOf, type Json, type JsonObject } from "../json.ts";
import { errorObject } from "../client-formats/completions-error.ts";
import { convertUsage, finishReason, isToolUse } from "./completions-to-messages-response.ts";
import type { StreamConverter } from "./converter.ts";

interface Tool {
  readonly index: number;
  hasArguments: boolean;
}

interface State {
  id: string;
  model: string;
  usage: JsonObject;
  /** Open tool blocks by their index among all content blocks. */
  readonly tools: Map<number, Tool>;
  toolCount: number;
  phase: StreamConverter["state"];
}

export function createStreamConverter(createdAt: number): StreamConverter {
  const state: State = { id: "", model: "", usage: {}, tools: new Map(), toolCount: 0, phase: "open" };
  const chunk = (delta: JsonObject, finish: string | null = null, usage?: JsonObject): JsonObject[] => [
    {
      id: state.id,
      object: "chat.completion.chunk",
      created: createdAt,
      model: state.model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(usage === undefined ? {} : { usage }),
    },
  ];
  const toolChunk = (call: JsonObject): JsonObject[] => chunk({ tool_calls: [call] });

  return {
    farewell: "[DONE]",
    get state() {
      return state.phase;
    },
    textOf(event) {
      const delta = event["type"] === "content_block_delta" ? objectOf(event["delta"]) : undefined;
      return delta?.["type"] === "text_delta" ? stringOf(delta["text"]) : undefined;
    },
    event(event) {
      if (state.phase === "failed") return [];
      switch (event["type"]) {
        case "message_start":
          return chunk(start(state, objectOf(event["message"]) ?? {}));
        case "content_block_start":
          return blockStart(state, event, { chunk, toolChunk });
        case "content_block_delta":
          return blockDelta(state, event, { chunk, toolChunk });
        case "content_block_stop": {
          const tool = closeTool(state, event["index"]);
          // Clients parse the arguments of every call, so a call without any gets an empty object.
          return tool === undefined || tool.hasArguments
            ? []
            : toolChunk({ index: tool.index, function: { arguments: "{}" } });
        }
        case "message_delta": {
          state.usage = { ...state.usage, ...objectOf(event["usage"]) };
          const reason = objectOf(event["delta"])?.["stop_reason"];
          if (typeof reason !== "string") return [];
          state.phase = "complete";
          return chunk({}, finishReason(reason), convertUsage(state.usage));
        }
        case "error": {
          state.phase = "failed";
          const error = objectOf(event["error"]);
          return [
            errorObject(stringOf(error?.["message"]) ?? "stream failed", stringOf(error?.["type"]) ?? "api_error"),
          ];
        }
        default:
          return [];
      }
    },
  };
}

interface Emit {
  readonly chunk: (delta: JsonObject) => JsonObject[];
  readonly toolChunk: (call: JsonObject) => JsonObject[];
}

function start(state: State, message: JsonObject): JsonObject {
  state.id = stringOf(message["id"]) ?? "";
  state.model = stringOf(message["model"]) ?? "";
  state.usage = objectOf(message["usage"]) ?? {};
  return { role: "assistant", content: "" };
}

function blockStart(state: State, event: JsonObject, emit: Emit): JsonObject[] {
  const block = objectOf(event["content_block"]) ?? {};
  if (!isToolUse(block)) {
    const text = stringOf(block["text"]);
    return text === undefined || text === "" ? [] : emit.chunk({ content: text });
  }
  const index = state.toolCount++;
  state.tools.set(countOf(event["index"]) ?? -1, { index, hasArguments: false });
  const name = stringOf(block["name"]) ?? "";
  return emit.toolChunk({
    index,
    id: stringOf(block["id"]) ?? "",
    type: "function",
    function: { name, arguments: "" },
  });
}

function blockDelta(state: State, event: JsonObject, emit: Emit): JsonObject[] {
  const delta = objectOf(event["delta"]) ?? {};
  switch (delta["type"]) {
    case "text_delta":
      return emit.chunk({ content: stringOf(delta["text"]) ?? "" });
    case "thinking_delta":
      return emit.chunk({ reasoning_content: stringOf(delta["thinking"]) ?? "" });
    case "input_json_delta": {
      const tool = state.tools.get(countOf(event["index"]) ?? -1);
      const part = stringOf(delta["partial_json"]) ?? "";
      if (tool === undefined || part === "") return [];
      tool.hasArguments = true;
      return emit.toolChunk({ index: tool.index, function: { arguments: part } });
    }
    default:
      return [];
  }
}

function closeTool(state: State, index: Json | undefined): Tool | undefined {
  const at = countOf(index) ?? -1;
  const tool = state.tools.get(at);
  state.tools.delete(at);
  return tool;
}

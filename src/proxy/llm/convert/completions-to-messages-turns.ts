/**
 * The conversation of a chat completions request as system text and alternating turns. Neighbours of one role become
 * one turn: the results of several tool calls have to arrive together, in a single user turn.
 */
import { ProxyError } from "../../errors.ts";
import { listOf, objectOf, parseObject, stringOf, type Json, type JsonObject } from "../json.ts";

interface Turn {
  readonly role: "user" | "assistant";
  readonly content: JsonObject[];
}

/** @throws ProxyError llm_request_invalid */
export function convertTurns(messages: readonly Json[]): { system: string; messages: JsonObject[] } {
  const system: string[] = [];
  const turns: Turn[] = [];
  const add = (role: Turn["role"], blocks: JsonObject[]): void => {
    if (blocks.length === 0) return;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: blocks });
  };
  for (const item of messages) {
    const message = objectOf(item);
    if (message === undefined) throw invalid("every message must be an object");
    switch (message["role"]) {
      case "system":
      case "developer":
        system.push(...texts(message["content"]).filter((text) => text.trim() !== ""));
        break;
      case "user":
        add("user", userBlocks(message["content"]));
        break;
      case "assistant":
        add("assistant", assistantBlocks(message));
        break;
      case "tool":
        add("user", [toolResult(message)]);
        break;
      case "function":
        add("user", texts(message["content"]).flatMap(textBlock));
        break;
      default:
        throw invalid("a message has an unknown role");
    }
  }
  return { system: system.join("\n"), messages: turns.map(({ role, content }) => ({ role, content })) };
}

/** Messages providers refuse empty text. */
function textBlock(text: string): JsonObject[] {
  return text === "" ? [] : [{ type: "text", text }];
}

function texts(content: Json | undefined): string[] {
  if (typeof content === "string") return [content];
  return listOf(content).flatMap((item) => {
    const part = objectOf(item);
    const text = part?.["type"] === "text" ? stringOf(part["text"]) : undefined;
    return text === undefined ? [] : [text];
  });
}

function userBlocks(content: Json | undefined): JsonObject[] {
  if (typeof content === "string") return textBlock(content);
  return listOf(content).flatMap((item) => {
    const part = objectOf(item) ?? {};
    if (part["type"] === "text") return textBlock(stringOf(part["text"]) ?? "");
    return part["type"] === "image_url" ? [image(part)] : [];
  });
}

function image(part: JsonObject): JsonObject {
  const url = stringOf(objectOf(part["image_url"])?.["url"]) ?? stringOf(part["image_url"]);
  if (url === undefined) throw invalid("an image has no url");
  if (!/^data:/i.test(url)) return { type: "image", source: { type: "url", url } };
  const comma = url.indexOf(",");
  const head = /^data:([^;,]+)(?:;[^;,]+)*;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  if (head === null) throw invalid("a data url of an image must be base64 with a media type");
  return {
    type: "image",
    source: { type: "base64", media_type: (head[1] as string).toLowerCase(), data: url.slice(comma + 1) },
  };
}

function assistantBlocks(message: JsonObject): JsonObject[] {
  const blocks = assistantTexts(message["content"]).flatMap(textBlock);
  blocks.push(...textBlock(stringOf(message["refusal"]) ?? ""));
  for (const item of listOf(message["tool_calls"])) {
    const call = objectOf(item);
    const made = objectOf(call?.["function"]);
    const id = stringOf(call?.["id"]);
    const name = stringOf(made?.["name"]);
    if (id === undefined || name === undefined) throw invalid("a tool call needs an id and a function with a name");
    blocks.push({ type: "tool_use", id, name, input: toolInput(stringOf(made?.["arguments"]) ?? "") });
  }
  return blocks;
}

function assistantTexts(content: Json | undefined): string[] {
  if (typeof content === "string") return [content];
  return listOf(content).flatMap((item) => {
    const part = objectOf(item);
    const text = stringOf(part?.["text"]) ?? stringOf(part?.["refusal"]);
    return text === undefined ? [] : [text];
  });
}

function toolInput(text: string): Json {
  return text.trim() === "" ? {} : (parseObject(Buffer.from(text)) ?? text);
}

function toolResult(message: JsonObject): JsonObject {
  const id = stringOf(message["tool_call_id"]);
  if (id === undefined) throw invalid("a tool message needs a tool_call_id");
  const { content } = message;
  return {
    type: "tool_result",
    tool_use_id: id,
    content: typeof content === "string" ? content : userBlocks(content),
  };
}

function invalid(reason: string): ProxyError {
  return new ProxyError("llm_request_invalid", { text: `failed to process LLM request: ${reason}` });
}

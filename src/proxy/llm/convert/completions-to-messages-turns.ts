/**
 * Converts the conversation of a chat completions request to a system text and alternating turns. Consecutive messages
 * of one role become one turn, because the results of several tool calls have to arrive together in a single user turn.
 */
import { parseObject, type Json, type JsonObject } from "../json.ts";
import { invalidRequest, readObjects, readText, requireObject, requireText } from "../request-fields.ts";

interface Turn {
  readonly role: "user" | "assistant";
  readonly content: JsonObject[];
}

export interface Conversation {
  readonly system: string;
  readonly messages: JsonObject[];
  /** Paths of tool arguments that are not a JSON object; the provider gets an empty object in their place. */
  readonly unreadable: readonly string[];
}

/** @throws ProxyError llm_request_invalid */
export function convertTurns(messages: readonly Json[]): Conversation {
  const system: string[] = [];
  const unreadable: string[] = [];
  const turns: Turn[] = [];
  const add = (role: Turn["role"], blocks: JsonObject[]): void => {
    if (blocks.length === 0) return;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: blocks });
  };
  messages.forEach((item, at) => {
    const path = `messages[${at}]`;
    const message = requireObject(item, path);
    const { content } = message;
    const role = requireText(message["role"], `${path}.role`);
    switch (role) {
      case "system":
      case "developer":
        system.push(...texts(requireContent(content, path), path).filter((text) => text.trim() !== ""));
        break;
      case "user":
        add("user", userBlocks(requireContent(content, path), path));
        break;
      case "assistant":
        add("assistant", assistantBlocks(message, path, unreadable));
        break;
      case "tool":
        add("user", [toolResult(message, path)]);
        break;
      case "function":
        add("user", texts(content, path).flatMap(textBlock));
        break;
      default:
        throw invalidRequest(`${path}.role must be system, developer, user, assistant, tool or function`);
    }
  });
  return { system: system.join("\n"), messages: turns.map(({ role, content }) => ({ role, content })), unreadable };
}

/** Drops empty text, which messages providers refuse. */
function textBlock(text: string): JsonObject[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** Refuses a message without content, which would otherwise be dropped silently. */
function requireContent(content: Json | undefined, path: string): Json {
  if (content === undefined || content === null) throw invalidRequest(`${path}.content must be ${CONTENT}`);
  return content;
}

const CONTENT = "a string or a list of parts";

interface Part {
  readonly type: string;
  readonly part: JsonObject;
  readonly path: string;
}

/** @returns a single text, or the parts; no parts when the content is absent */
function readContent(content: Json | undefined, path: string): string | Part[] {
  if (typeof content === "string") return content;
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) throw invalidRequest(`${path}.content must be ${CONTENT}`);
  return readObjects(content, `${path}.content`).map((part, at) => {
    const place = `${path}.content[${at}]`;
    return { type: requireText(part["type"], `${place}.type`), part, path: place };
  });
}

function texts(content: Json | undefined, path: string): string[] {
  const parts = readContent(content, path);
  if (typeof parts === "string") return [parts];
  return parts.flatMap(({ type, part, path: place }) =>
    type === "text" ? [requireText(part["text"], `${place}.text`)] : [],
  );
}

function userBlocks(content: Json | undefined, path: string): JsonObject[] {
  const parts = readContent(content, path);
  if (typeof parts === "string") return textBlock(parts);
  return parts.flatMap((each) => {
    if (each.type === "text") return textBlock(requireText(each.part["text"], `${each.path}.text`));
    return each.type === "image_url" ? [image(each)] : [];
  });
}

function image({ part, path }: Part): JsonObject {
  const place = `${path}.image_url`;
  const { image_url: given } = part;
  const url = typeof given === "string" ? given : requireText(requireObject(given, place)["url"], `${place}.url`);
  if (!/^data:/i.test(url)) return { type: "image", source: { type: "url", url } };
  const comma = url.indexOf(",");
  const head = /^data:([^;,]+)(?:;[^;,]+)*;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  if (head === null) throw invalidRequest(`${place}.url must be base64 with a media type where it is a data URL`);
  return {
    type: "image",
    source: { type: "base64", media_type: (head[1] as string).toLowerCase(), data: url.slice(comma + 1) },
  };
}

/** @param unreadable collects the paths of arguments that are not a JSON object */
function assistantBlocks(message: JsonObject, path: string, unreadable: string[]): JsonObject[] {
  const blocks = assistantTexts(message["content"], path).flatMap(textBlock);
  blocks.push(...textBlock(readText(message["refusal"], `${path}.refusal`) ?? ""));
  readObjects(message["tool_calls"], `${path}.tool_calls`).forEach((call, at) => {
    const place = `${path}.tool_calls[${at}]`;
    const id = requireText(call["id"], `${place}.id`);
    const made = requireObject(call["function"], `${place}.function`);
    const name = requireText(made["name"], `${place}.function.name`);
    const text = readText(made["arguments"], `${place}.function.arguments`) ?? "";
    const input = toolInput(text);
    if (input === undefined) unreadable.push(`${place}.function.arguments`);
    blocks.push({ type: "tool_use", id, name, input: input ?? {} });
  });
  return blocks;
}

function assistantTexts(content: Json | undefined, path: string): string[] {
  const parts = readContent(content, path);
  if (typeof parts === "string") return [parts];
  return parts.flatMap(({ type, part, path: place }) => {
    if (type !== "text" && type !== "refusal") return [];
    return [requireText(part[type], `${place}.${type}`)];
  });
}

/** @returns undefined when the text is not a JSON object */
function toolInput(text: string): JsonObject | undefined {
  return text.trim() === "" ? {} : parseObject(Buffer.from(text));
}

function toolResult(message: JsonObject, path: string): JsonObject {
  const id = requireText(message["tool_call_id"], `${path}.tool_call_id`);
  const { content } = message;
  return {
    type: "tool_result",
    tool_use_id: id,
    content: typeof content === "string" ? content : userBlocks(content, path),
  };
}

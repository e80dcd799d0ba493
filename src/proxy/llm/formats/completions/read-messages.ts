/** Reads one message of a chat completions request. `read-request.ts` uses it. */
import type {
  AudioPart,
  FilePart,
  ImagePart,
  Part,
  ResultPart,
  SystemText,
  TextPart,
  Turn,
} from "../../conversation/conversation.ts";
import { readCallId } from "../../conversation/call-id.ts";
import { readSignature } from "../../conversation/signature.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readObject,
  readObjects,
  readText,
  requireObject,
  requireText,
} from "../../shared/request-fields.ts";
import { readUrl } from "../shared/data-url.ts";
import { readFileData } from "../shared/file-name.ts";

interface Message {
  readonly system: readonly SystemText[];
  readonly role: Turn["role"];
  readonly parts: readonly Part[];
}

const CONTENT = "a string or a list of parts";

/** @throws ProxyError llm_request_invalid */
export function readMessage(item: Json, path: string): Message {
  const message = requireObject(item, path);
  const { content } = message;
  const role = requireText(message["role"], `${path}.role`);
  switch (role) {
    case "system":
    case "developer": {
      const system = textsOf(requireContent(content, path), path)
        .filter((text) => text.trim() !== "")
        .map((text) => ({ role, text }) as const);
      return { system, role: "user", parts: [] };
    }
    case "user":
      return { system: [], role: "user", parts: userParts(requireContent(content, path), path) };
    case "assistant":
      return { system: [], role: "assistant", parts: assistantParts(message, path) };
    case "tool":
      return { system: [], role: "user", parts: [toolResult(message, path)] };
    case "function":
      return { system: [], role: "user", parts: textsOf(content, path).flatMap(textPart) };
    default:
      throw invalidRequest(`${path}.role must be system, developer, user, assistant, tool or function`);
  }
}

/** Drops empty text, which other vendors refuse. */
function textPart(text: string): TextPart[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

/** Refuses a message without content, which would otherwise be dropped silently. */
function requireContent(content: Json | undefined, path: string): Json {
  if (content === undefined || content === null) throw invalidRequest(`${path}.content must be ${CONTENT}`);
  return content;
}

interface ContentPart {
  readonly type: string;
  readonly part: JsonObject;
  readonly path: string;
}

/** @returns a single text, or the parts; no parts when the content is absent */
function readContent(content: Json | undefined, path: string): string | ContentPart[] {
  if (typeof content === "string") return content;
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) throw invalidRequest(`${path}.content must be ${CONTENT}`);
  return readObjects(content, `${path}.content`).map((part, at) => {
    const place = `${path}.content[${at}]`;
    return { type: requireText(part["type"], `${place}.type`), part, path: place };
  });
}

function textsOf(content: Json | undefined, path: string): string[] {
  const parts = readContent(content, path);
  if (typeof parts === "string") return [parts];
  return parts.flatMap(({ type, part, path: place }) =>
    type === "text" ? [requireText(part["text"], `${place}.text`)] : [],
  );
}

function userParts(content: Json, path: string): Part[] {
  const parts = readContent(content, path);
  return typeof parts === "string" ? textPart(parts) : parts.flatMap(userPart);
}

function userPart({ type, part, path }: ContentPart): Part[] {
  switch (type) {
    case "text":
      return textPart(requireText(part["text"], `${path}.text`));
    case "image_url":
      return [image(part, path)];
    case "input_audio":
      return [audio(part, path)];
    case "file":
      return [file(part, path)];
    default:
      return [{ kind: "vendor", vendor: "openai", name: type, value: part, path }];
  }
}

function image(part: JsonObject, path: string): ImagePart {
  const place = `${path}.image_url`;
  const { image_url: given } = part;
  const described: JsonObject = typeof given === "string" ? { url: given } : requireObject(given, place);
  const url = requireText(described["url"], `${place}.url`);
  const mediaType =
    readText(described["format"], `${place}.format`) ??
    readText(described["mime_type"], `${place}.mime_type`) ??
    readText(described["content_type"], `${place}.content_type`);
  const detail = readText(described["detail"], `${place}.detail`);
  return {
    kind: "image",
    source: readUrl(url, `${place}.url`, mediaType),
    path: place,
    ...(detail === undefined ? {} : { detail }),
  };
}

function audio(part: JsonObject, path: string): AudioPart {
  const place = `${path}.input_audio`;
  const given = requireObject(part["input_audio"], place);
  const data = requireText(given["data"], `${place}.data`);
  const mediaType = `audio/${requireText(given["format"], `${place}.format`)}`;
  return { kind: "audio", source: { kind: "data", mediaType, data }, path: place };
}

function file(part: JsonObject, path: string): FilePart {
  const place = `${path}.file`;
  const given = requireObject(part["file"], place);
  const name = readText(given["filename"], `${place}.filename`);
  const id = readText(given["file_id"], `${place}.file_id`);
  const source =
    id === undefined
      ? readFileData(requireText(given["file_data"], `${place}.file_data`), name, `${place}.file_data`)
      : ({ kind: "id", id, vendor: "openai" } as const);
  return { kind: "file", source, path: place, ...(name === undefined ? {} : { name }) };
}

function assistantParts(message: JsonObject, path: string): Part[] {
  const parts: Part[] = readThinking(message, path);
  const content = readContent(message["content"], path);
  if (typeof content === "string") parts.push(...textPart(content));
  else
    for (const { type, part, path: place } of content)
      if (type === "text") parts.push(...textPart(requireText(part["text"], `${place}.text`)));
      else if (type === "refusal") parts.push(...refusal(requireText(part["refusal"], `${place}.refusal`)));
  parts.push(...refusal(readText(message["refusal"], `${path}.refusal`) ?? ""));
  if (readObject(message["audio"], `${path}.audio`) !== undefined)
    throw invalidRequest(`${path}.audio names speech that only the provider which made it knows`);
  readObjects(message["tool_calls"], `${path}.tool_calls`).forEach((call, at) =>
    parts.push(readCall(call, `${path}.tool_calls[${at}]`)),
  );
  return parts;
}

function refusal(text: string): Part[] {
  return text === "" ? [] : [{ kind: "refusal", text }];
}

/** Reads the thoughts that an earlier answer carried; they come first in the turn. */
function readThinking(message: JsonObject, path: string): Part[] {
  const blocks = readObjects(message["thinking_blocks"], `${path}.thinking_blocks`);
  if (blocks.length > 0) return blocks.flatMap((block, at) => readThought(block, `${path}.thinking_blocks[${at}]`));
  const text = readText(message["reasoning_content"], `${path}.reasoning_content`) ?? "";
  const signature = readText(message["reasoning_signature"], `${path}.reasoning_signature`);
  if (text === "" && signature === undefined) return [];
  // A signature without a prefix came through a gateway that adds none; in this format only Anthropic's are known.
  return [
    {
      kind: "reasoning",
      text,
      ...(signature === undefined ? {} : { signature: readSignature(signature, "anthropic") }),
    },
  ];
}

function readThought(block: JsonObject, path: string): Part[] {
  if (readText(block["type"], `${path}.type`) === "redacted_thinking")
    return [{ kind: "redacted", data: readSignature(requireText(block["data"], `${path}.data`), "anthropic") }];
  const signature = readText(block["signature"], `${path}.signature`);
  const text = readText(block["thinking"], `${path}.thinking`) ?? "";
  return [
    {
      kind: "reasoning",
      text,
      ...(signature === undefined ? {} : { signature: readSignature(signature, "anthropic") }),
    },
  ];
}

function readCall(call: JsonObject, path: string): Part {
  const identity = readCallId(requireText(call["id"], `${path}.id`));
  const type = readText(call["type"], `${path}.type`);
  const custom = type === "custom" ? readObject(call["custom"], `${path}.custom`) : undefined;
  if (custom !== undefined)
    return {
      kind: "call",
      ...identity,
      name: requireText(custom["name"], `${path}.custom.name`),
      arguments: readText(custom["input"], `${path}.custom.input`) ?? "",
      isFreeText: true,
      path: `${path}.custom.input`,
    };
  const made = requireObject(call["function"], `${path}.function`);
  return {
    kind: "call",
    ...identity,
    name: requireText(made["name"], `${path}.function.name`),
    arguments: readText(made["arguments"], `${path}.function.arguments`) ?? "",
    path: `${path}.function.arguments`,
  };
}

function toolResult(message: JsonObject, path: string): ResultPart {
  const { id } = readCallId(requireText(message["tool_call_id"], `${path}.tool_call_id`));
  const name = readText(message["name"], `${path}.name`);
  const named = name === undefined ? {} : { name };
  const content = readContent(message["content"], path);
  // A text is kept even when it is empty, because every call needs its result.
  if (typeof content === "string")
    return { kind: "result", id, parts: [{ kind: "text", text: content }], isPlain: true, ...named };
  return { kind: "result", id, parts: content.flatMap(userPart).filter(isResultPart), ...named };
}

function isResultPart(part: Part): part is ResultPart["parts"][number] {
  return part.kind === "text" || part.kind === "image" || part.kind === "file" || part.kind === "vendor";
}

/**
 * Reads the input items of a Responses request into instructions, turns and tools. `read-request.ts` uses it. An item
 * that stands for state at OpenAI, or for a tool that OpenAI runs, is refused, because no other provider has either.
 */
import {
  addParts,
  type Conversation,
  type FilePart,
  type ImagePart,
  type Part,
  type ResultPart,
  type Source,
  type SystemText,
  type TextPart,
} from "../../conversation/conversation.ts";
import { wrapFreeText } from "../../conversation/free-text.ts";
import { readCallId } from "../../conversation/call-id.ts";
import { readSignature } from "../../conversation/signature.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import { invalidRequest, readObjects, readText, requireObject, requireText } from "../../shared/request-fields.ts";
import { readUrl } from "../shared/data-url.ts";
import { readFileData } from "../shared/file-name.ts";
import { qualifiedName, readTools } from "./tools.ts";

/** What the items are read into. */
type Input = Pick<Conversation, "system" | "turns" | "tools">;

/** @throws ProxyError llm_request_invalid */
export function readInput(input: Json | undefined, into: Input): void {
  if (typeof input === "string") return addParts(into.turns, "user", textParts(input));
  if (!Array.isArray(input)) throw invalidRequest("input must be a string or a list");
  input.forEach((item, at) => readItem(requireObject(item, `input[${at}]`), `input[${at}]`, into));
}

function readItem(item: JsonObject, path: string, into: Input): void {
  const type = readText(item["type"], `${path}.type`) ?? (item["role"] === undefined ? "" : "message");
  switch (type) {
    case "message":
      return readMessage(item, path, into);
    case "function_call":
    case "custom_tool_call":
      return addParts(into.turns, "assistant", [readCall(item, type, path)]);
    case "function_call_output":
    case "custom_tool_call_output":
      return addParts(into.turns, "user", [readResult(item, path)]);
    case "reasoning":
      return addParts(into.turns, "assistant", readReasoning(item, path));
    case "additional_tools":
      return void into.tools.push(...readTools(item["tools"], `${path}.tools`));
    default:
      throw invalidRequest(`${path}: an item of type ${JSON.stringify(type)} cannot be translated for this provider`);
  }
}

function readMessage(item: JsonObject, path: string, { system, turns }: Input): void {
  const role = requireText(item["role"], `${path}.role`);
  const parts = readContent(item["content"], `${path}.content`);
  switch (role) {
    case "user":
    case "assistant":
      return addParts(turns, role, parts);
    case "system":
    case "developer":
      for (const part of parts)
        if (part.kind === "text" && part.text.trim() !== "") system.push(systemText(role, part));
      return;
    default:
      throw invalidRequest(`${path}.role must be user, assistant, system or developer`);
  }
}

function systemText(role: SystemText["role"], { text, cache }: TextPart): SystemText {
  return { role, text, ...(cache === undefined ? {} : { cache }) };
}

/** Drops empty text, which other vendors refuse. */
function textParts(text: string): TextPart[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function readContent(content: Json | undefined, path: string): Part[] {
  if (typeof content === "string") return textParts(content);
  if (!Array.isArray(content)) throw invalidRequest(`${path} must be a string or a list of parts`);
  return readObjects(content, path).flatMap((part, at) => readPart(part, `${path}[${at}]`));
}

function readPart(part: JsonObject, path: string): Part[] {
  const type = requireText(part["type"], `${path}.type`);
  const read = readTypedPart(part, type, path);
  // OpenAI marks the end of a prefix that it should cache with an object.
  const marked = readBreakpoint(part, path);
  return marked ? read.map((each) => ({ ...each, cache: {} })) : read;
}

function readTypedPart(part: JsonObject, type: string, path: string): Part[] {
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
      return textParts(requireText(part["text"], `${path}.text`));
    case "refusal": {
      const text = requireText(part["refusal"], `${path}.refusal`);
      return text === "" ? [] : [{ kind: "refusal", text }];
    }
    case "input_image":
      return [readImage(part, path)];
    case "input_file":
      return [readFile(part, path)];
    case "input_audio": {
      const place = `${path}.input_audio`;
      const given = requireObject(part["input_audio"], place);
      const data = requireText(given["data"], `${place}.data`);
      const mediaType = `audio/${requireText(given["format"], `${place}.format`)}`;
      return [{ kind: "audio", source: { kind: "data", mediaType, data }, path }];
    }
    default:
      throw invalidRequest(`${path}: a part of type ${JSON.stringify(type)} cannot be translated for this provider`);
  }
}

function readBreakpoint(part: JsonObject, path: string): boolean {
  const mark = part["prompt_cache_breakpoint"];
  return mark !== undefined && mark !== null && requireObject(mark, `${path}.prompt_cache_breakpoint`) !== undefined;
}

function readImage(part: JsonObject, path: string): ImagePart {
  const detail = readText(part["detail"], `${path}.detail`);
  const id = readText(part["file_id"], `${path}.file_id`);
  const source =
    id === undefined ? readUrl(requireText(part["image_url"], `${path}.image_url`), `${path}.image_url`) : fileAt(id);
  return { kind: "image", source, path, ...(detail === undefined ? {} : { detail }) };
}

function fileAt(id: string): Source {
  return { kind: "id", id, vendor: "openai" };
}

function readFile(part: JsonObject, path: string): FilePart {
  const name = readText(part["filename"], `${path}.filename`);
  return { kind: "file", source: readFileSource(part, name, path), path, ...(name === undefined ? {} : { name }) };
}

function readFileSource(part: JsonObject, name: string | undefined, path: string): Source {
  const id = readText(part["file_id"], `${path}.file_id`);
  if (id !== undefined) return fileAt(id);
  const url = readText(part["file_url"], `${path}.file_url`);
  if (url !== undefined) return readUrl(url, `${path}.file_url`);
  return readFileData(requireText(part["file_data"], `${path}.file_data`), name, `${path}.file_data`);
}

function readCall(item: JsonObject, type: string, path: string): Part {
  const name = requireText(item["name"], `${path}.name`);
  const call = {
    kind: "call",
    ...readCallId(requireText(item["call_id"], `${path}.call_id`)),
    name: qualifiedName(name, readText(item["namespace"], `${path}.namespace`)),
  } as const;
  if (type === "custom_tool_call")
    return { ...call, arguments: wrapFreeText(requireText(item["input"], `${path}.input`)), path: `${path}.input` };
  return { ...call, arguments: requireText(item["arguments"], `${path}.arguments`), path: `${path}.arguments` };
}

function readResult(item: JsonObject, path: string): ResultPart {
  const { id } = readCallId(requireText(item["call_id"], `${path}.call_id`));
  const name = readText(item["name"], `${path}.name`);
  const { output } = item;
  // A single text is kept even when it is empty, because every call needs its result.
  const isPlain = typeof output === "string";
  const parts = isPlain
    ? [{ kind: "text", text: output } as const]
    : readContent(output, `${path}.output`).filter((part) => isResultPart(part));
  const isError = item["status"] === "incomplete";
  return {
    kind: "result",
    id,
    parts,
    path,
    isPlain,
    ...(name === undefined ? {} : { name }),
    ...(isError ? { isError } : {}),
  };
}

function isResultPart(part: Part): part is ResultPart["parts"][number] {
  return part.kind === "text" || part.kind === "image" || part.kind === "file";
}

/**
 * Reads what the model thought. An item with a proof and without a summary is a thought that only its vendor can read;
 * an item with an empty summary is one whose text was left out.
 */
function readReasoning(item: JsonObject, path: string): Part[] {
  const summaries = readThoughts(item["summary"], `${path}.summary`);
  const thoughts = summaries.length > 0 ? summaries : readThoughts(item["content"], `${path}.content`);
  const id = readText(item["id"], `${path}.id`);
  const named = { path, ...(id === undefined ? {} : { id }) };
  const sealed = readText(item["encrypted_content"], `${path}.encrypted_content`);
  const signature = sealed === undefined ? undefined : readSignature(sealed, "openai");
  if (thoughts.length === 0) return signature === undefined ? [] : [{ kind: "redacted", data: signature, ...named }];
  return [
    { kind: "reasoning", text: thoughts.join("\n\n"), ...named, ...(signature === undefined ? {} : { signature }) },
  ];
}

function readThoughts(parts: Json | undefined, path: string): string[] {
  return readObjects(parts, path).map((part, at) => requireText(part["text"], `${path}[${at}].text`));
}

/** Prints the turns of a conversation as input items of a Responses request. `print-request.ts` uses it. */
import type { CacheMark, Conversation, Part, ResultPart, Source } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import { printUrl } from "../shared/data-url.ts";
import { printFileName } from "../shared/file-name.ts";

export interface ItemContext {
  readonly losses: Losses;
  /** Whether the model knows marks of prefixes to cache. */
  readonly hasCacheMarks: boolean;
}

/** @throws ProxyError llm_request_invalid for content that only another vendor has */
export function printInput({ turns }: Conversation, context: ItemContext): JsonObject[] {
  const items: JsonObject[] = [];
  /** Calls whose input is text; their results have a type of their own. */
  const freeText = new Set<string>();
  for (const { role, parts } of turns) {
    let content: JsonObject[] = [];
    const flush = (): void => {
      if (content.length > 0) items.push({ type: "message", role, content });
      content = [];
    };
    for (const part of parts) {
      if (part.kind === "call" && part.isFreeText === true) freeText.add(part.id);
      const printed = printItem(part, freeText, context);
      if (printed === undefined) content.push(...printContent(part, role, context));
      else {
        flush();
        items.push(...printed);
      }
    }
    flush();
  }
  return items;
}

/** @returns undefined for a part that is content of a message */
function printItem(part: Part, freeText: ReadonlySet<string>, context: ItemContext): JsonObject[] | undefined {
  switch (part.kind) {
    case "call": {
      const call = { call_id: part.id, name: part.name };
      if (part.isFreeText === true) return [{ type: "custom_tool_call", ...call, input: part.arguments }];
      const text = part.arguments.trim() === "" ? "{}" : part.arguments;
      return [{ type: "function_call", ...call, arguments: text }];
    }
    case "result":
      return [printResult(part, freeText.has(part.id), context)];
    case "reasoning":
    case "redacted":
      return printReasoning(part, context.losses);
    case "vendor":
      if (part.vendor === "openai") return [part.value];
      context.losses.add(part.path ?? part.name);
      return [];
    default:
      return undefined;
  }
}

/** Prints a thought that OpenAI made; one of another vendor, or without a proof, means nothing to the model. */
function printReasoning(part: Part & { kind: "reasoning" | "redacted" }, losses: Losses): JsonObject[] {
  const signature = part.kind === "redacted" ? part.data : part.signature;
  if (signature?.vendor !== "openai") {
    losses.add(part.path ?? part.kind);
    return [];
  }
  const text = part.kind === "redacted" ? "" : part.text;
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  const id = part.id === undefined ? {} : { id: part.id };
  return [{ type: "reasoning", ...id, summary, encrypted_content: signature.value }];
}

function printResult(
  { id, parts, isPlain, isError }: ResultPart,
  isFreeText: boolean,
  context: ItemContext,
): JsonObject {
  const [first] = parts;
  const output =
    isPlain !== false && parts.length === 1 && first?.kind === "text"
      ? first.text
      : parts.flatMap((part) => printContent(part, "user", context));
  return {
    type: isFreeText ? "custom_tool_call_output" : "function_call_output",
    call_id: id,
    output: output.length === 0 ? "" : output,
    ...(isError === true && !isFreeText ? { status: "incomplete" } : {}),
  };
}

function printContent(part: Part, role: "user" | "assistant", context: ItemContext): JsonObject[] {
  switch (part.kind) {
    case "text":
      if (part.citations !== undefined) context.losses.add(part.path ?? "citations");
      if (part.text === "") return [];
      return role === "assistant"
        ? [{ type: "output_text", text: part.text, annotations: [] }]
        : [{ type: "input_text", text: part.text, ...printMark(part.cache, context) }];
    case "refusal":
      return [role === "assistant" ? { type: "refusal", refusal: part.text } : { type: "input_text", text: part.text }];
    case "image": {
      const detail = { detail: part.detail ?? "auto" };
      const { source } = part;
      const from = source.kind === "id" ? fileId(source, part.path) : { image_url: printUrl(source) };
      return [{ type: "input_image", ...from, ...detail, ...printMark(part.cache, context) }];
    }
    case "file":
      if (part.citations === true) context.losses.add(`${part.path ?? "file"}.citations`);
      return [
        ...printFile(part),
        ...(part.context === undefined ? [] : [{ type: "input_text", text: part.context }]),
      ].map((printed, at) => (at === 0 ? { ...printed, ...printMark(part.cache, context) } : printed));
    case "audio": {
      const { source } = part;
      if (source.kind !== "data") throw invalidRequest(`${part.path ?? "audio"} must be inline for this provider`);
      const format = source.mediaType.slice(source.mediaType.indexOf("/") + 1);
      return [{ type: "input_audio", input_audio: { data: source.data, format } }];
    }
    default:
      return [];
  }
}

function printFile({ source, name, path }: Part & { kind: "file" }): JsonObject[] {
  switch (source.kind) {
    case "text":
      return [{ type: "input_text", text: name === undefined ? source.text : `${name}\n${source.text}` }];
    case "id":
      return [{ type: "input_file", ...fileId(source, path) }];
    case "url":
      return [{ type: "input_file", file_url: source.url }];
    case "data":
      return [{ type: "input_file", filename: printFileName(name, source.mediaType), file_data: printUrl(source) }];
  }
}

function fileId(source: Source & { kind: "id" }, path: string | undefined): JsonObject {
  if (source.vendor === "openai") return { file_id: source.id };
  throw invalidRequest(`${path ?? "a file"} names a file that this provider does not have`);
}

function printMark(mark: CacheMark | undefined, { hasCacheMarks, losses }: ItemContext): JsonObject {
  if (mark === undefined) return {};
  if (hasCacheMarks) return { prompt_cache_breakpoint: { mode: "explicit" } };
  losses.add("cache_control");
  return {};
}

/** Prints instructions as an item, which can carry a mark. */
export function printSystemItem(system: Conversation["system"], context: ItemContext): JsonObject {
  const content = system.map(({ text, cache }) => ({ type: "input_text", text, ...printMark(cache, context) }));
  return { type: "message", role: "system", content };
}

/** Reads the content blocks of a Messages request. `read-request.ts` uses it. */
import type { CacheMark, FilePart, Part, ResultPart, Signature, Source } from "../../conversation/conversation.ts";
import { readCallId } from "../../conversation/call-id.ts";
import { readSignature } from "../../conversation/signature.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readBoolean,
  readObject,
  readObjects,
  readText,
  requireObject,
  requireText,
} from "../../shared/request-fields.ts";

/** @throws ProxyError llm_request_invalid */
export function readBlocks(content: Json | undefined, path: string): Part[] {
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  if (!Array.isArray(content)) throw invalidRequest(`${path} must be a string or a list of blocks`);
  return readObjects(content, path).flatMap((block, at) => readBlock(block, `${path}[${at}]`));
}

/** Reads the mark that ends a cached prefix. */
export function readCache(block: JsonObject, path: string): { cache?: CacheMark } {
  const control = readObject(block["cache_control"], `${path}.cache_control`);
  if (control === undefined) return {};
  const ttl = readText(control["ttl"], `${path}.cache_control.ttl`);
  return { cache: ttl === undefined ? {} : { ttl } };
}

function readBlock(block: JsonObject, path: string): Part[] {
  const cache = readCache(block, path);
  const type = requireText(block["type"], `${path}.type`);
  switch (type) {
    case "text": {
      const text = requireText(block["text"], `${path}.text`);
      return text === "" ? [] : [{ kind: "text", text, ...cache }];
    }
    case "image":
      return [{ kind: "image", source: readSource(block, path), path: `${path}.source`, ...cache }];
    case "document":
      return readDocument(block, path).map((part) => ({ ...part, ...cache }));
    case "tool_use":
      return [{ ...readCall(block, path), ...cache }];
    case "tool_result":
      return [{ ...readResult(block, path), ...cache }];
    case "thinking": {
      const text = readText(block["thinking"], `${path}.thinking`) ?? "";
      const signature = readSigned(block["signature"], `${path}.signature`);
      return [{ kind: "reasoning", text, path, ...(signature === undefined ? {} : { signature }) }];
    }
    case "redacted_thinking":
      return [{ kind: "redacted", data: readSignature(requireText(block["data"], `${path}.data`), "anthropic"), path }];
    default:
      return [{ kind: "vendor", vendor: "anthropic", name: type, value: block, path }];
  }
}

function readSigned(value: Json | undefined, path: string): Signature | undefined {
  const text = readText(value, path) ?? "";
  return text === "" ? undefined : readSignature(text, "anthropic");
}

function readSource(block: JsonObject, path: string): Source {
  const place = `${path}.source`;
  const source = requireObject(block["source"], place);
  switch (source["type"]) {
    case "base64":
      return {
        kind: "data",
        mediaType: requireText(source["media_type"], `${place}.media_type`).toLowerCase(),
        data: requireText(source["data"], `${place}.data`),
      };
    case "url":
      return { kind: "url", url: requireText(source["url"], `${place}.url`) };
    case "text":
      return { kind: "text", text: requireText(source["data"], `${place}.data`), mediaType: "text/plain" };
    case "file":
      return { kind: "id", id: requireText(source["file_id"], `${place}.file_id`), vendor: "anthropic" };
    default:
      throw invalidRequest(`${place}.type must be base64, url, text or file`);
  }
}

function readDocument(block: JsonObject, path: string): FilePart[] {
  const place = `${path}.source`;
  // A document can also be a list of blocks; its texts stand for it.
  const source = requireObject(block["source"], place);
  const read: Source =
    source["type"] === "content"
      ? { kind: "text", text: textsIn(source["content"], `${place}.content`), mediaType: "text/plain" }
      : readSource(block, path);
  const title = readText(block["title"], `${path}.title`);
  const context = readText(block["context"], `${path}.context`);
  const cited = readBoolean(
    readObject(block["citations"], `${path}.citations`)?.["enabled"],
    `${path}.citations.enabled`,
  );
  return [
    {
      kind: "file",
      source: read,
      path: place,
      ...(title === undefined ? {} : { name: title }),
      ...(context === undefined ? {} : { context }),
      ...(cited === undefined ? {} : { citations: cited }),
    },
  ];
}

function textsIn(content: Json | undefined, path: string): string {
  if (typeof content === "string") return content;
  return readBlocks(content, path)
    .flatMap((part) => (part.kind === "text" ? [part.text] : []))
    .join("\n");
}

function readCall(block: JsonObject, path: string): Part & { kind: "call" } {
  const input = readObject(block["input"], `${path}.input`) ?? {};
  return {
    kind: "call",
    ...readCallId(requireText(block["id"], `${path}.id`)),
    name: requireText(block["name"], `${path}.name`),
    arguments: JSON.stringify(input),
    path: `${path}.input`,
  };
}

function readResult(block: JsonObject, path: string): ResultPart {
  const { content } = block;
  const isError = readBoolean(block["is_error"], `${path}.is_error`);
  // A text is kept even when it is empty, because every call needs its result.
  const isPlain = content === undefined || content === null || typeof content === "string";
  const parts: readonly Part[] = isPlain
    ? [{ kind: "text", text: content ?? "" }]
    : readBlocks(content, `${path}.content`);
  return {
    kind: "result",
    id: readCallId(requireText(block["tool_use_id"], `${path}.tool_use_id`)).id,
    parts: parts.filter(
      (part) => part.kind === "text" || part.kind === "image" || part.kind === "file" || part.kind === "vendor",
    ),
    path,
    isPlain,
    ...(isError === undefined ? {} : { isError }),
  };
}

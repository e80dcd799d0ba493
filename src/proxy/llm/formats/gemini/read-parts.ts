/** Reads the parts of one content of a Gemini request. `read-request.ts` uses it. */
import type { CallPart, Part, ResultPart, Source } from "../../conversation/conversation.ts";
import { readSignature } from "../../conversation/signature.ts";
import type { JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readBoolean,
  readObject,
  readObjects,
  readText,
  requireText,
} from "../../shared/request-fields.ts";
import { memberOf } from "./member.ts";

/**
 * Gives calls and results without identifiers their identifiers. Gemini pairs them by name and order, the other formats
 * by identifier.
 */
export class CallIds {
  /** Calls without a result. */
  readonly #open = new Set<string>();
  readonly #byName = new Map<string, { readonly ids: string[]; next: number }>();
  #count = 0;

  /** @param given identifier of the client; undefined when it has none */
  open(given: string | undefined, name: string): string {
    const id = given ?? `call_${++this.#count}`;
    this.#open.add(id);
    const known = this.#byName.get(name);
    if (known === undefined) this.#byName.set(name, { ids: [id], next: 0 });
    else known.ids.push(id);
    return id;
  }

  /** Returns the identifier of the call that a result belongs to: by identifier, else the first of that name. */
  close(given: string | undefined, name: string): string {
    if (given !== undefined && this.#open.delete(given)) return given;
    const known = this.#byName.get(name);
    while (known !== undefined && known.next < known.ids.length) {
      const id = known.ids[known.next++] as string; // the index was checked
      if (this.#open.delete(id)) return id;
    }
    return given ?? `call_${++this.#count}`;
  }
}

/** @param path of the part @throws ProxyError llm_request_invalid */
export function readPart(part: JsonObject, path: string, ids: CallIds): Part[] {
  const signature = readText(memberOf(part, "thoughtSignature"), `${path}.thoughtSignature`) ?? "";
  const signed = signature === "" ? {} : { signature: readSignature(signature, "google") };
  const text = readText(part["text"], `${path}.text`);
  if (readBoolean(part["thought"], `${path}.thought`) === true) return readThought(text, signed);
  if (text !== undefined) return text === "" && signature === "" ? [] : [{ kind: "text", text, ...signed }];
  const call = readObject(memberOf(part, "functionCall"), `${path}.functionCall`);
  if (call !== undefined) return [{ ...readCall(call, `${path}.functionCall`, ids), ...signed }];
  const result = readObject(memberOf(part, "functionResponse"), `${path}.functionResponse`);
  if (result !== undefined) return [readResult(result, `${path}.functionResponse`, ids)];
  return readMedia(part, path) ?? readOther(part, path);
}

/** A signature without a text is all there is of a thought that only its vendor can read. */
function readThought(text: string | undefined, { signature }: Pick<CallPart, "signature">): Part[] {
  if (text === undefined) return signature === undefined ? [] : [{ kind: "redacted", data: signature }];
  return [{ kind: "reasoning", text, ...(signature === undefined ? {} : { signature }) }];
}

function readCall(call: JsonObject, path: string, ids: CallIds): CallPart {
  const name = requireText(call["name"], `${path}.name`);
  const id = ids.open(readText(call["id"], `${path}.id`), name);
  const args = readObject(call["args"], `${path}.args`) ?? {};
  return { kind: "call", id, name, arguments: JSON.stringify(args), path };
}

function readResult(result: JsonObject, path: string, ids: CallIds): ResultPart {
  const name = requireText(result["name"], `${path}.name`);
  const id = ids.close(readText(result["id"], `${path}.id`), name);
  const response = readObject(result["response"], `${path}.response`) ?? {};
  const [only] = Object.keys(response);
  const isError = only === "error" && Object.keys(response).length === 1;
  const parts: ResultPart["parts"][number][] = [{ kind: "text", text: resultText(response) }];
  readObjects(result["parts"], `${path}.parts`).forEach((part, at) => {
    for (const media of readMedia(part, `${path}.parts[${at}]`) ?? [])
      if (media.kind === "image" || media.kind === "file") parts.push(media);
  });
  return { kind: "result", id, name, parts, ...(isError ? { isError } : {}) };
}

/** Members that clients wrap the text of a result in. */
const WRAPPERS: ReadonlySet<string> = new Set(["output", "result", "content", "error"]);

function resultText(response: JsonObject): string {
  const [only, ...others] = Object.entries(response);
  if (only === undefined) return "";
  const [name, value] = only;
  return others.length === 0 && WRAPPERS.has(name) && typeof value === "string" ? value : JSON.stringify(response);
}

function readMedia(part: JsonObject, path: string): Part[] | undefined {
  const inline = readObject(memberOf(part, "inlineData"), `${path}.inlineData`);
  if (inline !== undefined) {
    const place = `${path}.inlineData`;
    const mediaType = requireText(memberOf(inline, "mimeType"), `${place}.mimeType`).toLowerCase();
    const data = requireText(inline["data"], `${place}.data`);
    return [media({ kind: "data", mediaType, data }, mediaType, place)];
  }
  const file = readObject(memberOf(part, "fileData"), `${path}.fileData`);
  if (file === undefined) return undefined;
  const place = `${path}.fileData`;
  const mediaType = readText(memberOf(file, "mimeType"), `${place}.mimeType`)?.toLowerCase();
  return [media(fileSource(requireText(memberOf(file, "fileUri"), `${place}.fileUri`), mediaType), mediaType, place)];
}

/** Only Google can read files of its own storage. */
const OWN_FILE = /^gs:|^https:\/\/generativelanguage\.googleapis\.com\/|^(?:https?:\/\/)?(?:www\.)?youtu/i;

function fileSource(uri: string, mediaType: string | undefined): Source {
  const typed = mediaType === undefined ? {} : { mediaType };
  return OWN_FILE.test(uri) ? { kind: "id", id: uri, vendor: "google", ...typed } : { kind: "url", url: uri, ...typed };
}

function media(source: Source, mediaType: string | undefined, path: string): Part {
  if (mediaType?.startsWith("image/") === true) return { kind: "image", source, path };
  return { kind: mediaType?.startsWith("audio/") === true ? "audio" : "file", source, path };
}

/** Members that describe a part but make none. */
const REMARKS: ReadonlySet<string> = new Set(["thought", "thoughtSignature", "thought_signature", "partMetadata"]);

function readOther(part: JsonObject, path: string): Part[] {
  const name = Object.keys(part).find((each) => !REMARKS.has(each) && part[each] !== null);
  if (name === undefined) throw invalidRequest(`${path} must have a text, data, a call or a result`);
  return [{ kind: "vendor", vendor: "google", name, value: part, path }];
}

/** Documents and images for Converse, which takes their bytes and a format out of a list. */
import type { FilePart, ImagePart, Source } from "../../conversation/conversation.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";

const IMAGE_FORMATS: ReadonlyMap<string, string> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/jpg", "jpeg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
]);

const DOCUMENT_FORMATS: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
]);
const EXTENSIONS: ReadonlySet<string> = new Set(DOCUMENT_FORMATS.values());

const MAX_NAME_LENGTH = 200;

/** @throws ProxyError llm_request_invalid for an image that is not there or has another format */
export function printImage({ source, path = "image" }: ImagePart): JsonObject {
  if (source.kind !== "data") throw invalidRequest(`${path} must be a base64 data URL for this provider`);
  const format = IMAGE_FORMATS.get(source.mediaType);
  if (format === undefined)
    throw invalidRequest(`${path} must be a PNG, JPEG, GIF or WebP image for this provider, not ${source.mediaType}`);
  return { image: { format, source: { bytes: source.data } } };
}

/** Prints documents under names that are unique in a request. */
export class DocumentPrinter {
  readonly #names = new Set<string>();

  /** @throws ProxyError llm_request_invalid for a document that is not there or has another format */
  print({ source, name = "", path = "file", context, citations }: FilePart): JsonObject {
    const document: JsonObject = {
      format: formatOf(source, name, path),
      name: this.#nameOf(name),
      source: { bytes: bytesOf(source, path) },
    };
    if (context !== undefined && context.trim() !== "") document["context"] = context;
    if (citations !== undefined) document["citations"] = { enabled: citations };
    return { document };
  }

  /** Keeps letters, digits, single spaces, hyphens, parentheses and brackets, the characters that are allowed. */
  #nameOf(file: string): string {
    const cleaned = file
      .replace(/\.[A-Za-z0-9]{1,5}$/, "")
      .replaceAll(/[^A-Za-z0-9\s()[\]-]/g, "-")
      .replaceAll(/\s+/g, " ")
      .trim()
      .slice(0, MAX_NAME_LENGTH);
    const base = cleaned === "" ? "document" : cleaned;
    let name = base;
    for (let count = 2; this.#names.has(name); count++) name = `${base} (${count})`;
    this.#names.add(name);
    return name;
  }
}

function formatOf(source: Source, name: string, path: string): string {
  const type = source.kind === "id" ? undefined : source.mediaType;
  const extension = /\.([A-Za-z0-9]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const format = DOCUMENT_FORMATS.get(type ?? "") ?? (EXTENSIONS.has(extension) ? extension : undefined);
  if (format !== undefined) return format;
  if (type?.startsWith("text/") === true) return "txt";
  throw invalidRequest(`${path} must be one of ${[...EXTENSIONS].join(", ")} for this provider`);
}

function bytesOf(source: Source, path: string): string {
  if (source.kind === "data") return source.data;
  if (source.kind === "text") return Buffer.from(source.text).toString("base64");
  throw invalidRequest(`${path} must be base64 data for this provider`);
}

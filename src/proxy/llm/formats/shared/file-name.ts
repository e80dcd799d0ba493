/** Files in the formats of OpenAI, which tells the type of a file by the end of its name. */
import type { Source } from "../../conversation/conversation.ts";
import { readUrl } from "./data-url.ts";

/** Media types of the files that the APIs take, by the end of their names. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["json", "application/json"],
  ["doc", "application/msword"],
  ["docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["xls", "application/vnd.ms-excel"],
  ["xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
]);
const ENDS: ReadonlyMap<string, string> = new Map([...MEDIA_TYPES].map(([end, type]) => [type, end]));

function endOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1).toLowerCase();
}

/**
 * Reads the bytes of a file: a URL, or Base64 without a media type, which the name tells then.
 * @param path of the data, for the error
 * @throws ProxyError llm_request_invalid for a data URL that is not base64
 */
export function readFileData(data: string, name: string | undefined, path: string): Source {
  // No character of Base64 is a colon.
  if (/^[a-z][a-z0-9+.-]*:/i.test(data)) return readUrl(data, path);
  return { kind: "data", mediaType: MEDIA_TYPES.get(endOf(name ?? "")) ?? "application/pdf", data };
}

/** Returns a name that tells the type. @param name as the client gave it, such as the title of a document */
export function printFileName(name: string | undefined, mediaType: string): string {
  const given = name ?? "document";
  if (MEDIA_TYPES.has(endOf(given))) return given;
  const end = ENDS.get(mediaType) ?? (mediaType.startsWith("text/") ? "txt" : undefined);
  return end === undefined ? given : `${given}.${end}`;
}

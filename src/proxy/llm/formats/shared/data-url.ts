/** URLs of images and files in requests: data URLs (RFC 2397) carry the bytes, others say where they are. */
import type { Source } from "../../conversation/conversation.ts";
import { invalidRequest } from "../../shared/request-fields.ts";

/**
 * @param path of the URL, for the error
 * @param mediaType as the client named it beside the URL
 * @throws ProxyError llm_request_invalid for a data URL that is not base64
 */
export function readUrl(url: string, path: string, mediaType?: string): Source {
  if (!/^data:/i.test(url)) return { kind: "url", url, ...(mediaType === undefined ? {} : { mediaType }) };
  const comma = url.indexOf(",");
  const head = /^data:([^;,]+)(?:;[^;,]+)*;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  if (head === null) throw invalidRequest(`${path} must be base64 with a media type where it is a data URL`);
  return { kind: "data", mediaType: (head[1] as string).toLowerCase(), data: url.slice(comma + 1) };
}

/** Prints a source as a URL; undefined for one that no URL can name. */
export function printUrl(source: Source): string | undefined {
  if (source.kind === "url") return source.url;
  if (source.kind === "data") return `data:${source.mediaType};base64,${source.data}`;
  if (source.kind === "text") return `data:${source.mediaType};base64,${Buffer.from(source.text).toString("base64")}`;
  return undefined;
}

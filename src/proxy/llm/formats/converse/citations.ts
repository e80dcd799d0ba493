/** Rewrites citations of Converse in the words of the Messages API, which clients of that family read. */
import type { Citation } from "../../conversation/conversation.ts";
import { listOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";

export function readCitation(citation: JsonObject): Citation {
  const location = objectOf(citation["location"]) ?? {};
  const texts = listOf(citation["sourceContent"]).map((item) => stringOf(objectOf(item)?.["text"]) ?? "");
  const title = stringOf(citation["title"]) ?? null;
  const cited = { cited_text: texts.join("") };
  return {
    vendor: "anthropic",
    value: readDocument(location, { ...cited, document_title: title }) ?? {
      ...cited,
      title,
      ...readSource(location, stringOf(citation["source"]) ?? ""),
    },
  };
}

function readDocument(location: JsonObject, cited: JsonObject): JsonObject | undefined {
  const kinds = [
    ["documentChar", "char_location", "start_char_index", "end_char_index"],
    ["documentPage", "page_location", "start_page_number", "end_page_number"],
    ["documentChunk", "content_block_location", "start_block_index", "end_block_index"],
  ] as const;
  for (const [member, type, start, end] of kinds) {
    const place = objectOf(location[member]);
    if (place === undefined) continue;
    const document_index = place["documentIndex"] ?? 0;
    return { type, ...cited, document_index, [start]: place["start"] ?? 0, [end]: place["end"] ?? 0 };
  }
  return undefined;
}

function readSource(location: JsonObject, source: string): JsonObject {
  const web = objectOf(location["web"]);
  if (web !== undefined) return { type: "web_search_result_location", url: web["url"] ?? source, encrypted_index: "" };
  const place = objectOf(location["searchResultLocation"]) ?? {};
  return {
    type: "search_result_location",
    source,
    search_result_index: place["searchResultIndex"] ?? 0,
    start_block_index: place["start"] ?? 0,
    end_block_index: place["end"] ?? 0,
  };
}

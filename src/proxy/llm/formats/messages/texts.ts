/** The texts of Messages bodies (Anthropic API) that prompt guards look at. */
import { objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import {
  flatText,
  objectsIn,
  TextCollector,
  type FlatMessage,
  type FormatTexts,
  type PartTexts,
  type StreamedText,
  type TextPlace,
} from "../guarded-text.ts";

function keyOf({ type }: JsonObject): string | undefined {
  return type === "text" ? "text" : undefined;
}

const SYSTEM_PARTS: PartTexts = { keyOf, separator: "\n" };
const PARTS: PartTexts = { keyOf, separator: " " };
const SYSTEM: TextPlace = { scope: "SystemPrompt", role: "system" };

export const messagesTexts: FormatTexts = {
  requestTexts(body) {
    const collector = new TextCollector();
    collector.content(body, "system", SYSTEM, SYSTEM_PARTS);
    for (const message of objectsIn(body["messages"])) {
      const role = stringOf(message["role"]) ?? "user";
      const place: TextPlace = role === "system" ? SYSTEM : { scope: "Messages", role };
      collector.content(message, "content", place, {
        keyOf,
        separator: role === "system" ? "\n" : " ",
        other: (block) => addBlock(collector, block, role),
      });
    }
    return collector.texts;
  },

  requestMessages(body) {
    const system = flatText(body["system"], SYSTEM_PARTS);
    const messages = objectsIn(body["messages"]).map((message) => ({
      role: stringOf(message["role"]) ?? "user",
      content: flatText(message["content"], PARTS),
    }));
    return system === "" ? messages : [{ role: "system", content: system }, ...messages];
  },

  replaceMessages(body, messages) {
    const isSystem = ({ role }: FlatMessage): boolean => ["system", "developer"].includes(role.toLowerCase());
    const system = messages.filter(isSystem).map(({ content }) => content);
    if (system.length > 0) body["system"] = system.join("\n");
    else delete body["system"];
    body["messages"] = messages.filter((message) => !isSystem(message)).map(({ role, content }) => ({ role, content }));
  },

  answerTexts(body) {
    const collector = new TextCollector();
    const place: TextPlace = { scope: "Messages", role: "assistant" };
    collector.content(body, "content", place, {
      keyOf,
      separator: " ",
      other: (block) => addBlock(collector, block, "assistant"),
    });
    return collector.texts;
  },

  answerChoices(body) {
    const collector = new TextCollector();
    const place: TextPlace = { scope: "Messages", role: stringOf(body["role"]) ?? "assistant" };
    collector.choice(place, flatText(body["content"], PARTS), (masked) => {
      body["content"] = withText(Array.isArray(body["content"]) ? body["content"] : [], masked);
    });
    return collector.texts;
  },

  streamedTexts(event) {
    const lane = `block ${String(event["index"] ?? 0)}`;
    switch (event["type"]) {
      case "content_block_start":
        return startedTexts(lane, objectOf(event["content_block"]) ?? {});
      case "content_block_delta":
        return deltaTexts(lane, objectOf(event["delta"]) ?? {});
      // No vendor says anything here, but clients keep what they find.
      case "message_start":
        return objectsIn(objectOf(event["message"])?.["content"]).flatMap((block, at) =>
          startedTexts(`block ${at}`, block),
        );
      default:
        return [];
    }
  },
};

/** Puts one text in place of all text blocks, at the position of the first. */
function withText(blocks: readonly Json[], text: string): Json[] {
  const isText = (block: Json): boolean => objectOf(block)?.["type"] === "text";
  const first = blocks.findIndex(isText);
  const others = blocks.filter((block) => !isText(block));
  const at = first === -1 ? others.length : blocks.slice(0, first).length;
  return [...others.slice(0, at), { type: "text", text }, ...others.slice(at)];
}

function addBlock(collector: TextCollector, block: JsonObject, role: string): void {
  const place: TextPlace = { scope: "Messages", role };
  const output: TextPlace = { scope: "ToolOutput", role };
  switch (block["type"]) {
    case "thinking":
      collector.member(block, "thinking", { ...place, isSigned: (stringOf(block["signature"]) ?? "") !== "" });
      break;
    case "redacted_thinking":
      break;
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      collector.memberValues(block, "input", { scope: "ToolInput", role });
      break;
    case "document":
      addDocument(collector, block, place);
      break;
    case "search_result":
      for (const key of ["title", "content"]) addContent(collector, block, key, output);
      break;
    default:
      // tool_result, and the results of the tools that the vendor runs itself.
      addContent(collector, block, "content", output);
  }
}

/** Adds the result of a tool: a text, a list of blocks, or the object of a vendor's own tool. */
function addContent(collector: TextCollector, block: JsonObject, key: string, place: TextPlace): void {
  const content = objectOf(block[key]);
  if (content !== undefined) return addResult(collector, content, place);
  collector.content(block, key, place, {
    keyOf,
    separator: " ",
    other: (part) =>
      part["type"] === "document" ? addDocument(collector, part, place) : addResult(collector, part, place),
  });
}

/** Members of a vendor's results that are texts; the others are addresses, names and encrypted contents. */
function addResult(collector: TextCollector, result: JsonObject, place: TextPlace): void {
  for (const key of ["text", "title", "stdout", "stderr"]) collector.member(result, key, place);
  if (Array.isArray(result["content"])) addContent(collector, result, "content", place);
  const document = objectOf(result["content"]);
  if (document !== undefined) addDocument(collector, document, place);
}

function addDocument(collector: TextCollector, document: JsonObject, place: TextPlace): void {
  for (const key of ["title", "context"]) collector.member(document, key, place);
  const source = objectOf(document["source"]);
  if (source?.["type"] === "text") collector.member(source, "data", place);
  if (source?.["type"] === "content") collector.content(source, "content", place, PARTS);
}

function startedTexts(lane: string, block: JsonObject): StreamedText[] {
  if (block["type"] === "text") return pieces(lane, "Messages", block["text"]);
  if (block["type"] === "thinking") return pieces(lane, "Messages", block["thinking"]);
  const collector = new TextCollector();
  addBlock(collector, block, "assistant");
  return collector.texts.map(({ scope, text }, at) => ({ lane: `${lane} started ${at}`, scope, text }));
}

function deltaTexts(lane: string, delta: JsonObject): StreamedText[] {
  switch (delta["type"]) {
    case "text_delta":
      return pieces(lane, "Messages", delta["text"]);
    case "thinking_delta":
      return pieces(lane, "Messages", delta["thinking"]);
    case "input_json_delta":
      return pieces(lane, "ToolInput", delta["partial_json"]);
    default:
      return [];
  }
}

function pieces(lane: string, scope: StreamedText["scope"], value: Json | undefined): StreamedText[] {
  const text = stringOf(value);
  return text === undefined || text === "" ? [] : [{ lane, scope, text }];
}

/** Token counts of the Anthropic API (`POST /messages/count_tokens`): the body of a message without its settings. */
import { countOf, listOf, objectOf, type Json } from "../../shared/json.ts";
import type { ChatFormat } from "../chat-format.ts";
import { parseRequest } from "../messages/read-request.ts";
import { messagesTexts } from "../messages/texts.ts";
import { countPromptTokens } from "./prompt-tokens.ts";

export const messagesTokenCount: ChatFormat = {
  name: "MessagesTokenCount",
  vendor: "anthropic",
  namesModel: true,
  parse: (body) => ({ ...parseRequest(body), streaming: false }),
  usage(answer) {
    const tokens = countOf(answer["input_tokens"]);
    return tokens === undefined ? {} : { countTokens: tokens };
  },
  stream: () => false,
  async answer(body, model) {
    const files = listOf(body["messages"]).reduce(
      (sum: number, item) => sum + countFiles(objectOf(item)?.["content"]),
      0,
    );
    const tools = listOf(body["tools"]);
    return { input_tokens: await countPromptTokens({ body, model, texts: messagesTexts, tools, files }) };
  },
};

const FILES: ReadonlySet<Json | undefined> = new Set(["image", "document"]);

/** Counts the images and documents among blocks, and among the blocks in results of tools. */
function countFiles(content: Json | undefined): number {
  let files = 0;
  for (const item of listOf(content)) {
    const block = objectOf(item);
    if (FILES.has(block?.["type"])) files++;
    else if (block?.["type"] === "tool_result")
      files += listOf(block["content"]).filter((inner) => FILES.has(objectOf(inner)?.["type"])).length;
  }
  return files;
}

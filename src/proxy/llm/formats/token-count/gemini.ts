/**
 * Token counts of the Gemini API (`models/<model>:countTokens`). The body is that of Vertex AI, where instructions and
 * tools stand beside `contents`; the Gemini API itself takes them in `generateContentRequest`, which is unwrapped here.
 */
import { countOf, listOf, objectOf, type Json, type JsonObject } from "../../shared/json.ts";
import { requireObject } from "../../shared/request-fields.ts";
import type { ChatFormat } from "../chat-format.ts";
import { memberOf } from "../gemini/member.ts";
import { parseRequest } from "../gemini/read-request.ts";
import { geminiTexts } from "../gemini/texts.ts";
import { countPromptTokens } from "./prompt-tokens.ts";

export const geminiTokenCount: ChatFormat = {
  name: "GeminiTokenCount",
  vendor: "google",
  namesModel: false,
  parse(body, target) {
    const wrapped = memberOf(body, "generateContentRequest");
    const inner = wrapped === undefined ? body : requireObject(wrapped, "generateContentRequest");
    const { model } = parseRequest({ ...inner, model: body["model"] }, target);
    // The path names the model; a name in the body is the one before aliases.
    if (inner !== body) inner["model"] = undefined;
    return { body: inner, model, streaming: false };
  },
  usage(answer) {
    const tokens = countOf(answer["totalTokens"]);
    return tokens === undefined ? {} : { countTokens: tokens };
  },
  stream: () => false,
  async answer(body, model) {
    const tools = listOf(body["tools"]);
    const files = listOf(body["contents"]).reduce((sum: number, content) => sum + countFiles(content), 0);
    return { totalTokens: await countPromptTokens({ body, model, texts: geminiTexts, tools, files }) };
  },
};

function countFiles(content: Json): number {
  return listOf(objectOf(content)?.["parts"]).filter((part) => isFile(objectOf(part) ?? {})).length;
}

function isFile(part: JsonObject): boolean {
  return memberOf(part, "inlineData") !== undefined || memberOf(part, "fileData") !== undefined;
}

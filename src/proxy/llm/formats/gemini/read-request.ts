/**
 * Reads a request of the Gemini API (`models/<model>:generateContent`, `:streamGenerateContent`) into a conversation,
 * and checks one that is only passed on. Model and streaming are in the path.
 */
import { pathOf } from "../../../../lib/network/request-target.ts";
import { addParts, type Conversation, type Part, type SystemText } from "../../conversation/conversation.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import { readModelName, readPathModel } from "../../shared/model-name.ts";
import {
  invalidRequest,
  readObject,
  readObjects,
  readText,
  requireList,
  requireObject,
} from "../../shared/request-fields.ts";
import type { LlmRequest, RequestContext } from "../chat-format.ts";
import { readExtra } from "../shared/extra.ts";
import { readNativePath } from "../../shared/native-path.ts";
import { bothSpellings, memberOf, requireOneSpelling } from "./member.ts";
import { CallIds, readPart } from "./read-parts.ts";
import { readGenerationConfig } from "./read-settings.ts";
import { readToolChoice, readTools } from "./read-tools.ts";

/** Fields that the reader understands; others are kept as fields of the vendor. */
const READ = bothSpellings("model contents systemInstruction tools toolConfig generationConfig");

const ASKS_FOR_EVENTS = /[?&](?:\$|%24)?alt=sse(?:&|$)/i;

/** Checks the parts that every reader and guard relies on; the rest is left to the provider or to the reader. */
export function parseRequest(body: JsonObject, target = ""): LlmRequest {
  requireList(body["contents"], "contents").forEach((item, at) => {
    const place = `contents[${at}]`;
    checkContent(item, place).forEach((part, index) => checkPart(part, `${place}.parts[${index}]`));
  });
  requireOneSpelling(body, "systemInstruction", "systemInstruction");
  const system = readObject(memberOf(body, "systemInstruction"), "systemInstruction");
  readObjects(system?.["parts"], "systemInstruction.parts");
  const path = readNativePath(pathOf(target));
  const model = path === undefined ? readModelName(body["model"]) : readPathModel(path.model);
  const streaming = path?.method === "streamGenerateContent";
  return { body, model, streaming, wantsList: streaming && !ASKS_FOR_EVENTS.test(target) };
}

function checkContent(item: Json, path: string): JsonObject[] {
  return readObjects(requireObject(item, path)["parts"], `${path}.parts`);
}

/** Members of parts that hold texts, in two words. */
const GUARDED = ["functionCall", "functionResponse", "executableCode", "codeExecutionResult"] as const;

function checkPart(part: JsonObject, path: string): void {
  for (const name of GUARDED) requireOneSpelling(part, name, `${path}.${name}`);
}

export function readRequest(body: JsonObject, { model, streaming, losses }: RequestContext): Conversation {
  if ((readText(memberOf(body, "cachedContent"), "cachedContent") ?? "") !== "")
    throw invalidRequest("cachedContent is not known to this provider");
  const { sampling, reasoning, output } = readGenerationConfig(body, losses);
  const conversation: Conversation = {
    model,
    streaming,
    system: readSystem(body),
    turns: [],
    tools: readTools(body),
    sampling,
    extra: readExtra(body, READ, "google"),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(output === undefined ? {} : { output }),
  };
  const toolChoice = readToolChoice(body);
  if (toolChoice !== undefined) conversation.toolChoice = toolChoice;
  readTurns(body, conversation.turns);
  return conversation;
}

function readSystem(body: JsonObject): SystemText[] {
  const system = readObject(memberOf(body, "systemInstruction"), "systemInstruction");
  return readObjects(system?.["parts"], "systemInstruction.parts").flatMap((part, at) => {
    const text = readText(part["text"], `systemInstruction.parts[${at}].text`) ?? "";
    return text.trim() === "" ? [] : [{ role: "system", text }];
  });
}

function readTurns(body: JsonObject, turns: Conversation["turns"]): void {
  const contents = requireList(body["contents"], "contents");
  if (contents.length === 0) throw invalidRequest("contents must not be empty");
  const ids = new CallIds();
  contents.forEach((item, at) => {
    const path = `contents[${at}]`;
    const role = readRole(requireObject(item, path)["role"], `${path}.role`);
    const parts = checkContent(item, path);
    addParts(turns, role, joinThoughts(parts.flatMap((part, index) => readPart(part, `${path}.parts[${index}]`, ids))));
  });
}

/** Joins the pieces of a thought that was streamed: the signature came last, with an empty text. */
function joinThoughts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.kind === "reasoning" && last?.kind === "reasoning" && last.signature === undefined)
      joined[joined.length - 1] = { ...part, text: last.text + part.text };
    else joined.push(part);
  }
  return joined;
}

/** Results of tools once had a role of their own. */
function readRole(given: Json | undefined, path: string): "user" | "assistant" {
  switch (readText(given, path) ?? "") {
    case "":
    case "user":
    case "function":
      return "user";
    case "model":
      return "assistant";
    default:
      throw invalidRequest(`${path} must be user or model`);
  }
}

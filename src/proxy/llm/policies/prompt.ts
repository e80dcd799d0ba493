/**
 * `prompt` of an `ai` block: adds messages before and after those of the client, in the client's own format, on every
 * request of a chat format and of token counting. Instructions go where the format has them: beside the messages in all
 * formats but Completions.
 */
import type { PromptEnrichment, PromptMessage } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { FormatName } from "../formats/chat-format.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import { invalidRequest, readObject, requireList } from "../shared/request-fields.ts";

/** @throws ProxyError llm_request_invalid when the body has no messages where they belong */
export type AddPrompt = (body: JsonObject, format: FormatName) => void;

export function compilePrompt({ prepend, append }: PromptEnrichment): AddPrompt {
  const before = splitPrompt(prepend);
  const after = splitPrompt(append);
  return (body, format) => ADD[format]?.(body, { prepend, append, before, after });
}

interface Prompt {
  readonly prepend: readonly PromptMessage[];
  readonly append: readonly PromptMessage[];
  readonly before: SplitPrompt;
  readonly after: SplitPrompt;
}

interface SplitPrompt {
  readonly system: readonly string[];
  readonly messages: readonly PromptMessage[];
}

function splitPrompt(messages: readonly PromptMessage[]): SplitPrompt {
  const isSystem = ({ role }: PromptMessage): boolean => role === "system" || role === "developer";
  return {
    system: messages.filter(isSystem).map(({ content }) => content),
    messages: messages.filter((message) => !isSystem(message)),
  };
}

/** Texts of instructions are joined by this, as where system messages of Completions become one text. */
const SEPARATOR = "\n";

/** undefined for a format that holds no conversation of a client. */
const ADD: Readonly<Record<FormatName, ((body: JsonObject, prompt: Prompt) => void) | undefined>> = {
  Completions(body, { prepend, append }) {
    body["messages"] = around(prepend, requireList(body["messages"], "messages"), append, messageOf);
  },
  Messages: addToMessages,
  Responses(body, { before, after }) {
    addText(body, "instructions", before.system, after.system);
    if (before.messages.length + after.messages.length === 0) return;
    body["input"] = around(before.messages, inputItems(body["input"]), after.messages, messageOf);
  },
  Gemini: addToGemini,
  MessagesTokenCount: addToMessages,
  GeminiTokenCount: addToGemini,
  Converse: undefined,
  Embeddings: undefined,
  EmbedContent: undefined,
  BatchEmbedContents: undefined,
  Rerank: undefined,
};

function addToMessages(body: JsonObject, { before, after }: Prompt): void {
  addText(body, "system", before.system, after.system);
  body["messages"] = around(before.messages, requireList(body["messages"], "messages"), after.messages, messageOf);
}

function addToGemini(body: JsonObject, { before, after }: Prompt): void {
  addSystemInstruction(body, before.system, after.system);
  body["contents"] = around(before.messages, requireList(body["contents"], "contents"), after.messages, contentOf);
}

function around(
  before: readonly PromptMessage[],
  items: readonly Json[],
  after: readonly PromptMessage[],
  print: (message: PromptMessage) => JsonObject,
): Json[] {
  return [...before.map(print), ...items, ...after.map(print)];
}

function messageOf({ role, content }: PromptMessage): JsonObject {
  return { role, content };
}

function contentOf({ role, content }: PromptMessage): JsonObject {
  return { role: role === "assistant" ? "model" : role, parts: [{ text: content }] };
}

/** Adds to a field that is a text, or in Messages a list of blocks. The field keeps its form. */
function addText(
  body: JsonObject,
  name: "system" | "instructions",
  before: readonly string[],
  after: readonly string[],
): void {
  if (before.length + after.length === 0) return;
  const client = body[name] ?? "";
  const block = (text: string): JsonObject => ({ type: "text", text });
  if (typeof client === "string")
    body[name] = [...before, ...(client === "" ? [] : [client]), ...after].join(SEPARATOR);
  else if (name === "system" && Array.isArray(client))
    body[name] = [...before.map(block), ...client, ...after.map(block)];
  else throw invalidRequest(`${name} must be a string${name === "system" ? " or a list of blocks" : ""}`);
}

/** `input` of Responses is a text, which stands for one message of the user, or a list of items. */
function inputItems(input: Json | undefined): readonly Json[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  return input === undefined || input === null ? [] : requireList(input, "input");
}

/** Gemini reads both spellings; the client's own is kept. */
function addSystemInstruction(body: JsonObject, before: readonly string[], after: readonly string[]): void {
  if (before.length + after.length === 0) return;
  const name = body["system_instruction"] === undefined ? "systemInstruction" : "system_instruction";
  const instruction = readObject(body[name], name) ?? {};
  const parts = instruction["parts"];
  const client = parts === undefined || parts === null ? [] : requireList(parts, `${name}.parts`);
  const part = (text: string): JsonObject => ({ text });
  body[name] = { ...instruction, parts: [...before.map(part), ...client, ...after.map(part)] };
}

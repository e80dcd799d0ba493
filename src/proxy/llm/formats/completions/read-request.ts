/**
 * Reads a chat completions request (OpenAI API, `POST /chat/completions`) into a conversation, and checks one that is
 * only passed on.
 */
import {
  addParts,
  type Conversation,
  type OutputFormat,
  type Tool,
  type ToolChoice,
} from "../../conversation/conversation.ts";
import { freeTextFunction } from "../../conversation/free-text.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import { readModelName } from "../../shared/model-name.ts";
import {
  invalidRequest,
  readBoolean,
  readCount,
  readNumber,
  readObject,
  readObjects,
  readText,
  requireList,
  requireObject,
  requireText,
} from "../../shared/request-fields.ts";
import type { LlmRequest, RequestContext } from "../chat-format.ts";
import { readExtra } from "../shared/extra.ts";
import { readStop } from "../shared/stop.ts";
import { readMessage } from "./read-messages.ts";

/** Fields that the reader understands; others are kept as fields of the vendor. */
const READ: ReadonlySet<string> = new Set(
  (
    "model messages max_tokens max_completion_tokens stop temperature top_p top_k stream stream_options tools " +
    "tool_choice parallel_tool_calls user thinking_budget_tokens reasoning_effort response_format n seed " +
    "presence_penalty frequency_penalty functions function_call modalities"
  ).split(" "),
);

/** Checks the parts that every reader and guard relies on; the rest is left to the provider or to the reader. */
export function parseRequest(body: JsonObject): LlmRequest {
  requireList(body["messages"], "messages").forEach(checkMessage);
  readObjects(body["tools"], "tools");
  readBoolean(readObject(body["stream_options"], "stream_options")?.["include_usage"], "stream_options.include_usage");
  return { body, model: readModelName(body["model"]), streaming: readBoolean(body["stream"], "stream") === true };
}

function checkMessage(item: Json, at: number): void {
  const path = `messages[${at}]`;
  const message = requireObject(item, path);
  requireText(message["role"], `${path}.role`);
  const { content } = message;
  if (Array.isArray(content)) readObjects(content, `${path}.content`);
  else if (content !== undefined && content !== null && typeof content !== "string")
    throw invalidRequest(`${path}.content must be a string or a list of parts`);
  readObjects(message["tool_calls"], `${path}.tool_calls`);
}

export function readRequest(body: JsonObject, { model, streaming }: RequestContext): Conversation {
  const messages = requireList(body["messages"], "messages");
  requireTextAnswer(body["modalities"]);
  if (messages.length === 0) throw invalidRequest("messages must not be empty");
  const conversation: Conversation = {
    model,
    streaming,
    system: [],
    turns: [],
    tools: readTools(body),
    sampling: readSampling(body),
    extra: readExtra(body, READ, "openai"),
  };
  messages.forEach((item, at) => {
    const { system, role, parts } = readMessage(item, `messages[${at}]`);
    conversation.system.push(...system);
    addParts(conversation.turns, role, parts);
  });
  addSettings(body, conversation);
  return conversation;
}

/** No other format has an answer of speech that a chat completion could hold. */
function requireTextAnswer(modalities: Json | undefined): void {
  if (modalities === undefined || modalities === null) return;
  const at = requireList(modalities, "modalities").findIndex((modality) => modality !== "text");
  if (at !== -1) throw invalidRequest(`modalities[${at}] must be "text" for this provider`);
}

function addSettings(body: JsonObject, conversation: Conversation): void {
  const choice = readToolChoice(body["tool_choice"] ?? legacyChoice(body["function_call"]));
  if (choice !== undefined) conversation.toolChoice = choice;
  const parallelCalls = readBoolean(body["parallel_tool_calls"], "parallel_tool_calls");
  if (parallelCalls !== undefined) conversation.parallelCalls = parallelCalls;
  const effort = readText(body["reasoning_effort"], "reasoning_effort");
  const budgetTokens = readCount(body["thinking_budget_tokens"], "thinking_budget_tokens");
  if (effort !== undefined || budgetTokens !== undefined)
    conversation.reasoning = {
      isEnabled: effort !== "none" || budgetTokens !== undefined,
      ...(effort === undefined ? {} : { effort }),
      ...(budgetTokens === undefined ? {} : { budgetTokens }),
    };
  const output = readOutput(readObject(body["response_format"], "response_format"));
  if (output !== undefined) conversation.output = output;
  const user = readText(body["user"], "user");
  if (user !== undefined) conversation.user = user;
}

function readSampling(body: JsonObject): Conversation["sampling"] {
  const olderLimit = readCount(body["max_tokens"], "max_tokens");
  return {
    maxTokens: readCount(body["max_completion_tokens"], "max_completion_tokens") ?? olderLimit,
    temperature: readNumber(body["temperature"], "temperature"),
    topP: readNumber(body["top_p"], "top_p"),
    topK: readCount(body["top_k"], "top_k"),
    stop: readStop(body["stop"], "stop"),
    seed: readNumber(body["seed"], "seed"),
    presencePenalty: readNumber(body["presence_penalty"], "presence_penalty"),
    frequencyPenalty: readNumber(body["frequency_penalty"], "frequency_penalty"),
    choices: readCount(body["n"], "n"),
  };
}

function readTools(body: JsonObject): Tool[] {
  const tools = readObjects(body["tools"], "tools").map(readTool);
  // The predecessor of `tools`.
  const functions = readObjects(body["functions"], "functions");
  return [...tools, ...functions.map((made, at) => readFunction(made, `functions[${at}]`))];
}

function readTool(tool: JsonObject, at: number): Tool {
  const path = `tools[${at}]`;
  const type = requireText(tool["type"], `${path}.type`);
  if (type === "function") return readFunction(requireObject(tool["function"], `${path}.function`), `${path}.function`);
  if (type === "custom") return readCustomTool(requireObject(tool["custom"], `${path}.custom`), `${path}.custom`);
  return { kind: "vendor", vendor: "openai", name: type, value: tool, path };
}

function readCustomTool(made: JsonObject, path: string): Tool {
  const name = requireText(made["name"], `${path}.name`);
  const description = readText(made["description"], `${path}.description`);
  const place = `${path}.format.grammar`;
  const grammar = readObject(readObject(made["format"], `${path}.format`)?.["grammar"], place);
  const definition = readText(grammar?.["definition"], `${place}.definition`);
  const syntax = readText(grammar?.["syntax"], `${place}.syntax`);
  return freeTextFunction(name, description, definition === undefined ? undefined : { definition, syntax });
}

function readFunction(made: JsonObject, path: string): Tool {
  const name = requireText(made["name"], `${path}.name`);
  const description = readText(made["description"], `${path}.description`);
  const schema = readObject(made["parameters"], `${path}.parameters`) ?? { type: "object", properties: {} };
  const strict = readBoolean(made["strict"], `${path}.strict`);
  return {
    kind: "function",
    name,
    schema,
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
  };
}

function legacyChoice(call: Json | undefined): Json | undefined {
  return typeof call === "object" && call !== null && !Array.isArray(call)
    ? { type: "function", function: call }
    : call;
}

const CHOICES: ReadonlyMap<string, ToolChoice> = new Map([
  ["auto", { kind: "auto" }],
  ["required", { kind: "required" }],
  ["none", { kind: "none" }],
]);

function readToolChoice(choice: Json | undefined): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (typeof choice === "string") {
    const known = CHOICES.get(choice);
    if (known === undefined) throw invalidRequest("tool_choice must be auto, required, none or an object");
    return known;
  }
  const chosen = requireObject(choice, "tool_choice");
  const type = readText(chosen["type"], "tool_choice.type");
  if (type === "allowed_tools") return readAllowedTools(chosen);
  const key = type === "custom" ? "custom" : "function";
  // Only a choice of a tool by its name has a meaning elsewhere.
  if (type !== key && chosen[key] === undefined) return undefined;
  const made = requireObject(chosen[key], `tool_choice.${key}`);
  return { kind: "required", names: [requireText(made["name"], `tool_choice.${key}.name`)] };
}

function readAllowedTools(chosen: JsonObject): ToolChoice {
  const path = "tool_choice.allowed_tools";
  const allowed = requireObject(chosen["allowed_tools"], path);
  if (allowed["mode"] === "auto") return { kind: "auto" };
  const names = readObjects(allowed["tools"], `${path}.tools`).map((tool, at) => {
    const key = tool["type"] === "custom" ? "custom" : "function";
    const place = `${path}.tools[${at}].${key}`;
    return requireText(requireObject(tool[key], place)["name"], `${place}.name`);
  });
  return { kind: "required", names };
}

function readOutput(format: JsonObject | undefined): OutputFormat | undefined {
  const type = readText(format?.["type"], "response_format.type");
  if (type === "json_object") return {};
  if (type !== "json_schema") return undefined;
  const path = "response_format.json_schema";
  const described = requireObject(format?.["json_schema"], path);
  const schema = readObject(described["schema"], `${path}.schema`);
  const name = readText(described["name"], `${path}.name`);
  const strict = readBoolean(described["strict"], `${path}.strict`);
  return {
    ...(schema === undefined ? {} : { schema }),
    ...(name === undefined ? {} : { name }),
    ...(strict === undefined ? {} : { strict }),
  };
}

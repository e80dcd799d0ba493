/**
 * Reads a Responses request (OpenAI API, `POST /responses`) into a conversation, and checks one that is only passed on.
 * State that OpenAI keeps for its clients does not exist at other providers: a request that needs it is refused.
 */
import type { Conversation, OutputFormat, ReasoningSettings } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
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
  requireObject,
  requireText,
} from "../../shared/request-fields.ts";
import type { LlmRequest, RequestContext } from "../chat-format.ts";
import { readExtra } from "../shared/extra.ts";
import { readInput } from "./read-items.ts";
import { readToolChoice, readTools } from "./tools.ts";

/** Fields that the reader understands or refuses; others are kept as fields of the vendor. */
const READ: ReadonlySet<string> = new Set(
  (
    "model input instructions stream stream_options tools tool_choice parallel_tool_calls max_output_tokens " +
    "temperature top_p reasoning text user include store previous_response_id conversation background prompt moderation"
  ).split(" "),
);

/** Checks the parts that every reader and guard relies on; the rest is left to the reader or to the provider. */
export function parseRequest(body: JsonObject): LlmRequest {
  const { input } = body;
  if (input !== undefined && input !== null && typeof input !== "string") {
    if (!Array.isArray(input)) throw invalidRequest("input must be a string or a list");
    readObjects(input, "input").forEach((item, at) => checkContent(item["content"], `input[${at}].content`));
  }
  readText(body["instructions"], "instructions");
  readObjects(body["tools"], "tools");
  return { body, model: readModelName(body["model"]), streaming: readBoolean(body["stream"], "stream") === true };
}

function checkContent(content: Json | undefined, path: string): void {
  if (Array.isArray(content)) readObjects(content, path);
  else if (content !== undefined && content !== null && typeof content !== "string")
    throw invalidRequest(`${path} must be a string or a list of parts`);
}

export function readRequest(body: JsonObject, { model, streaming, losses }: RequestContext): Conversation {
  refuseState(body);
  const conversation: Conversation = {
    model,
    streaming,
    system: [],
    turns: [],
    tools: readTools(body["tools"], "tools"),
    sampling: readSampling(body),
    extra: readExtra(withVerbosity(body), READ, "openai"),
  };
  const { system, turns } = conversation;
  const instructions = readText(body["instructions"], "instructions") ?? "";
  if (instructions.trim() !== "") system.push({ role: "developer", text: instructions });
  readInput(body["input"], conversation);
  if (turns.length === 0 && system.length === 0) throw invalidRequest("input must not be empty");
  addToolChoice(body, conversation);
  addSettings(body, conversation, losses);
  return conversation;
}

/** Chat completions have the same field, but not below `text`. */
function withVerbosity(body: JsonObject): JsonObject {
  const verbosity = readText(readObject(body["text"], "text")?.["verbosity"], "text.verbosity");
  return verbosity === undefined ? body : { ...body, verbosity };
}

/** Refuses what only OpenAI's own servers can do: they keep conversations, prompts and answers under a name. */
function refuseState(body: JsonObject): void {
  for (const name of ["previous_response_id", "conversation", "prompt", "moderation"])
    if (body[name] !== undefined && body[name] !== null)
      throw invalidRequest(`${name} cannot be translated for this provider`);
  for (const name of ["store", "background"])
    if (readBoolean(body[name], name) === true)
      throw invalidRequest(`${name} must be false, because this provider keeps no answers`);
}

function readSampling(body: JsonObject): Conversation["sampling"] {
  return {
    maxTokens: readCount(body["max_output_tokens"], "max_output_tokens"),
    temperature: readNumber(body["temperature"], "temperature"),
    topP: readNumber(body["top_p"], "top_p"),
  };
}

function addToolChoice(body: JsonObject, conversation: Conversation): void {
  const { choice, allowed } = readToolChoice(body["tool_choice"]);
  if (choice !== undefined) conversation.toolChoice = choice;
  if (allowed === undefined) return;
  // Other formats cannot limit the choice, so the model does not learn of the tools that it may not call.
  const kept = conversation.tools.filter((tool) => allowed.has(tool.name));
  conversation.tools.splice(0, conversation.tools.length, ...kept);
}

function addSettings(body: JsonObject, conversation: Conversation, losses: Losses): void {
  const parallelCalls = readBoolean(body["parallel_tool_calls"], "parallel_tool_calls");
  if (parallelCalls !== undefined) conversation.parallelCalls = parallelCalls;
  const reasoning = readReasoning(readObject(body["reasoning"], "reasoning"));
  if (reasoning !== undefined) conversation.reasoning = reasoning;
  const text = readObject(body["text"], "text");
  const output = readOutput(readObject(text?.["format"], "text.format"));
  if (output !== undefined) conversation.output = output;
  const user = readText(body["user"], "user");
  if (user !== undefined) conversation.user = user;
  nameIncludes(body["include"], losses);
}

/** The model of a client that says nothing about the effort thinks as much as OpenAI's models do by default. */
const DEFAULT_EFFORT = "medium";

function readReasoning(reasoning: JsonObject | undefined): ReasoningSettings | undefined {
  const effort = readText(reasoning?.["effort"], "reasoning.effort");
  const display =
    readText(reasoning?.["summary"], "reasoning.summary") ??
    readText(reasoning?.["generate_summary"], "reasoning.generate_summary");
  if (effort === undefined && display === undefined) return undefined;
  return {
    isEnabled: effort !== "none",
    effort: effort ?? DEFAULT_EFFORT,
    ...(display === undefined ? {} : { display }),
  };
}

function readOutput(format: JsonObject | undefined): OutputFormat | undefined {
  const type = readText(format?.["type"], "text.format.type");
  if (type === undefined || type === "text") return undefined;
  if (type === "json_object") return {};
  if (type !== "json_schema") throw invalidRequest("text.format.type must be text, json_schema or json_object");
  const name = requireText(format?.["name"], "text.format.name");
  const schema = requireObject(format?.["schema"], "text.format.schema");
  const strict = readBoolean(format?.["strict"], "text.format.strict");
  return { name, schema, ...(strict === undefined ? {} : { strict }) };
}

/** Encrypted reasoning comes with every answer that has some; what else a client wants to see exists only at OpenAI. */
function nameIncludes(include: Json | undefined, losses: Losses): void {
  if (include === undefined || include === null) return;
  if (!Array.isArray(include)) throw invalidRequest("include must be a list");
  include.forEach((item, at) => {
    const name = requireText(item, `include[${at}]`);
    if (name !== "reasoning.encrypted_content") losses.add(`include ${name}`);
  });
}

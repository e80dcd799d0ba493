/** Converts a chat completions request to a messages request. */
import type { Json, JsonObject } from "../json.ts";
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
} from "../request-fields.ts";
import { convertTurns } from "./completions-to-messages-turns.ts";

const DEFAULT_MAX_TOKENS = 4096;
/** The smallest thinking budget that messages providers accept. */
const MIN_THINKING_TOKENS = 1024;
const EFFORT_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16384,
};

const EXPRESSED: ReadonlySet<string> = new Set(
  (
    "model messages max_tokens max_completion_tokens stop temperature top_p stream stream_options tools tool_choice " +
    "parallel_tool_calls user thinking_budget_tokens reasoning_effort response_format n"
  ).split(" "),
);

export function convertRequest(body: JsonObject): { body: JsonObject; dropped: string[] } {
  if ((readCount(body["n"], "n") ?? 1) > 1)
    throw invalidRequest("n greater than 1 cannot be translated for this provider");
  const olderLimit = readCount(body["max_tokens"], "max_tokens");
  const maxTokens =
    readCount(body["max_completion_tokens"], "max_completion_tokens") ?? olderLimit ?? DEFAULT_MAX_TOKENS;
  const turns = requireList(body["messages"], "messages");
  if (turns.length === 0) throw invalidRequest("messages must not be empty");
  const { system, messages, unreadable } = convertTurns(turns);
  const result: JsonObject = { model: body["model"], max_tokens: maxTokens, messages };
  if (system !== "") result["system"] = system;
  for (const name of ["temperature", "top_p"] as const) {
    const value = readNumber(body[name], name);
    if (value !== undefined) result[name] = value;
  }
  const stream = readBoolean(body["stream"], "stream");
  if (stream !== undefined) result["stream"] = stream;
  const stop = stopSequences(body["stop"]);
  if (stop.length > 0) result["stop_sequences"] = stop;
  const user = readText(body["user"], "user");
  if (user !== undefined) result["metadata"] = { user_id: user };
  addTools(body, result);
  addThinking(body, result, maxTokens);
  addResponseFormat(readObject(body["response_format"], "response_format"), result);
  const dropped = Object.keys(body).filter((name) => !EXPRESSED.has(name) && body[name] !== null);
  return { body: result, dropped: [...dropped, ...unreadable] };
}

function stopSequences(stop: Json | undefined): string[] {
  if (stop === undefined || stop === null) return [];
  const texts = Array.isArray(stop)
    ? stop.map((text, at) => requireText(text, `stop[${at}]`))
    : [readText(stop, "stop") ?? ""];
  return texts.filter((text) => text !== "");
}

function addTools(body: JsonObject, result: JsonObject): void {
  const tools = readObjects(body["tools"], "tools").flatMap(convertTool);
  const isSingle = readBoolean(body["parallel_tool_calls"], "parallel_tool_calls") === false;
  const choice = convertToolChoice(body["tool_choice"]);
  // Messages providers refuse a tool_choice without tools.
  if (tools.length === 0) return;
  result["tools"] = tools;
  if (isSingle && choice?.["type"] !== "none")
    result["tool_choice"] = { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
  else if (choice !== undefined) result["tool_choice"] = choice;
}

/** Drops tools that are not functions. */
function convertTool(tool: JsonObject, at: number): JsonObject[] {
  const path = `tools[${at}]`;
  if (requireText(tool["type"], `${path}.type`) !== "function") return [];
  const made = requireObject(tool["function"], `${path}.function`);
  const name = requireText(made["name"], `${path}.function.name`);
  const description = readText(made["description"], `${path}.function.description`);
  const schema = readObject(made["parameters"], `${path}.function.parameters`) ?? { type: "object", properties: {} };
  return [{ name, ...(description === undefined ? {} : { description }), input_schema: schema }];
}

const CHOICES: ReadonlyMap<string, string> = new Map([
  ["auto", "auto"],
  ["required", "any"],
  ["none", "none"],
]);

function convertToolChoice(choice: Json | undefined): JsonObject | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (typeof choice === "string") {
    const type = CHOICES.get(choice);
    if (type === undefined) throw invalidRequest("tool_choice must be auto, required, none or an object");
    return { type };
  }
  const chosen = readObject(choice, "tool_choice");
  // Only a choice of a function has a counterpart in the messages format.
  if (chosen?.["type"] !== "function" && chosen?.["function"] === undefined) return undefined;
  const made = requireObject(chosen["function"], "tool_choice.function");
  return { type: "tool", name: requireText(made["name"], "tool_choice.function.name") };
}

function addThinking(body: JsonObject, result: JsonObject, maxTokens: number): void {
  const effort = readText(body["reasoning_effort"], "reasoning_effort") ?? "";
  const asked =
    readCount(body["thinking_budget_tokens"], "thinking_budget_tokens") ??
    (Object.hasOwn(EFFORT_TOKENS, effort) ? EFFORT_TOKENS[effort] : undefined);
  if (asked === undefined || asked < MIN_THINKING_TOKENS || maxTokens <= MIN_THINKING_TOKENS) return;
  result["thinking"] = { type: "enabled", budget_tokens: Math.min(asked, maxTokens - 1) };
}

function addResponseFormat(format: JsonObject | undefined, result: JsonObject): void {
  let schema: Json | undefined;
  const type = readText(format?.["type"], "response_format.type");
  if (type === "json_schema") {
    const described = requireObject(format?.["json_schema"], "response_format.json_schema");
    schema = readObject(described["schema"], "response_format.json_schema.schema");
  } else if (type === "json_object") schema = { type: "object", additionalProperties: true };
  if (schema !== undefined) result["output_config"] = { format: { type: "json_schema", schema } };
}

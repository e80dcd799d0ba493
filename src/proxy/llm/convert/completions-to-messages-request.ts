/** A chat completions request as a messages request. */
import { ProxyError } from "../../errors.ts";
import { countOf, listOf, objectOf, stringOf, type Json, type JsonObject } from "../json.ts";
import { convertTurns } from "./completions-to-messages-turns.ts";

const DEFAULT_MAX_TOKENS = 4096;
/** The least that a messages provider accepts as thinking budget. */
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
  const choices = countOf(body["n"]);
  if (choices !== undefined && choices > 1) throw invalid("n greater than 1 cannot be translated for this provider");
  const maxTokens = countOf(body["max_completion_tokens"]) ?? countOf(body["max_tokens"]) ?? DEFAULT_MAX_TOKENS;
  const { system, messages } = convertTurns(listOf(body["messages"]));
  const result: JsonObject = { model: body["model"], max_tokens: maxTokens, messages };
  if (system !== "") result["system"] = system;
  for (const name of ["temperature", "top_p", "stream"] as const)
    if (body[name] !== undefined && body[name] !== null) result[name] = body[name];
  const stop = stopSequences(body["stop"]);
  if (stop.length > 0) result["stop_sequences"] = stop;
  const user = stringOf(body["user"]);
  if (user !== undefined) result["metadata"] = { user_id: user };
  addTools(body, result);
  addThinking(body, result, maxTokens);
  addResponseFormat(objectOf(body["response_format"]), result);
  const dropped = Object.keys(body).filter((name) => !EXPRESSED.has(name) && body[name] !== null);
  return { body: result, dropped };
}

function stopSequences(stop: Json | undefined): string[] {
  return (Array.isArray(stop) ? stop : [stop]).filter((text) => typeof text === "string" && text !== "") as string[];
}

function addTools(body: JsonObject, result: JsonObject): void {
  const tools = listOf(body["tools"]).flatMap(convertTool);
  // A choice without tools is refused by messages providers.
  if (tools.length === 0) return;
  result["tools"] = tools;
  const choice = convertToolChoice(body["tool_choice"]);
  const single = body["parallel_tool_calls"] === false && choice?.["type"] !== "none";
  if (single) result["tool_choice"] = { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
  else if (choice !== undefined) result["tool_choice"] = choice;
}

function convertTool(item: Json): JsonObject[] {
  const tool = objectOf(item);
  const made = objectOf(tool?.["function"]);
  const name = stringOf(made?.["name"]);
  if (tool?.["type"] !== "function" || made === undefined || name === undefined) return [];
  const description = stringOf(made["description"]);
  const schema = objectOf(made["parameters"]) ?? { type: "object", properties: {} };
  return [{ name, ...(description === undefined ? {} : { description }), input_schema: schema }];
}

function convertToolChoice(choice: Json | undefined): JsonObject | undefined {
  if (choice === "auto") return { type: "auto" };
  if (choice === "required") return { type: "any" };
  if (choice === "none") return { type: "none" };
  const name = stringOf(objectOf(objectOf(choice)?.["function"])?.["name"]);
  return name === undefined ? undefined : { type: "tool", name };
}

function addThinking(body: JsonObject, result: JsonObject, maxTokens: number): void {
  const effort = stringOf(body["reasoning_effort"]) ?? "";
  const asked =
    countOf(body["thinking_budget_tokens"]) ??
    (Object.hasOwn(EFFORT_TOKENS, effort) ? EFFORT_TOKENS[effort] : undefined);
  if (asked === undefined || asked < MIN_THINKING_TOKENS || maxTokens <= MIN_THINKING_TOKENS) return;
  result["thinking"] = { type: "enabled", budget_tokens: Math.min(asked, maxTokens - 1) };
}

function addResponseFormat(format: JsonObject | undefined, result: JsonObject): void {
  let schema: Json | undefined;
  if (format?.["type"] === "json_schema") schema = objectOf(format["json_schema"])?.["schema"];
  else if (format?.["type"] === "json_object") schema = { type: "object", additionalProperties: true };
  if (schema !== undefined) result["output_config"] = { format: { type: "json_schema", schema } };
}

function invalid(reason: string): ProxyError {
  return new ProxyError("llm_request_invalid", { text: `failed to process LLM request: ${reason}` });
}

/** Prints a conversation as a Responses request, for clients of the other formats. OpenAI keeps nothing of it. */
import type { Conversation, FunctionTool, Tool, ToolChoice } from "../../conversation/conversation.ts";
import { effortOf } from "../../conversation/reasoning.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import type { PrintContext, PrintedRequest } from "../chat-format.ts";
import { AllowedNames } from "../shared/allowed-names.ts";
import { printExtra } from "../shared/extra.ts";
import { renameTools, toolNamesIn } from "../shared/tool-names.ts";
import { printInput, printSystemItem, type ItemContext } from "./print-items.ts";

/** Fields of chat completions that this format knows under the same name and with the same meaning. */
const SHARED_FIELDS: ReadonlySet<string> = new Set(
  "metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention".split(" "),
);

/** Fewer tokens are refused by OpenAI; clients of other vendors ask for one token to try their key. */
const MIN_OUTPUT_TOKENS = 16;
const MAX_METADATA = 512;

export function printRequest(given: Conversation, { losses }: PrintContext): PrintedRequest {
  const names = new AllowedNames(toolNamesIn(given));
  const { originals } = names;
  const conversation = originals === undefined ? given : renameTools(given, names);
  const { model, streaming, output, user } = conversation;
  const context: ItemContext = { losses, hasCacheMarks: knowsCacheMarks(model) };
  const body: JsonObject = { model, input: printInput(conversation, context), store: false };
  printSystem(conversation, body, context);
  if (streaming) body["stream"] = true;
  const isThinking = printReasoning(conversation, body);
  printSampling(conversation.sampling, body, { losses, isThinking });
  printTools(conversation, body, losses);
  if (output !== undefined) body["text"] = { format: printOutput(output) };
  const extra = printExtra(conversation, { target: "openai", known: SHARED_FIELDS, losses });
  if (user !== undefined && user.length <= MAX_METADATA) body["metadata"] = { user_id: user };
  else if (user !== undefined) losses.add("user");
  return { body: { ...body, ...extra }, ...(originals === undefined ? {} : { toolNames: originals }) };
}

/** Instructions become items when one of them carries a mark, which the field cannot. */
function printSystem({ system }: Conversation, body: JsonObject, context: ItemContext): void {
  const isMarked = context.hasCacheMarks && system.some(({ cache }) => cache !== undefined);
  const input = body["input"];
  if (isMarked && Array.isArray(input)) input.unshift(printSystemItem(system, context));
  else if (system.length > 0) {
    body["instructions"] = system.map(({ text }) => text).join("\n");
    if (system.some(({ cache }) => cache !== undefined)) context.losses.add("cache_control");
  }
  if (Array.isArray(input) && input.length === 0) {
    if (system.length === 0) throw invalidRequest("the request has no messages");
    // The API wants an input even when the instructions say everything.
    body["input"] = "";
  }
}

/** Matches gpt models from 5.6 on, which cache prefixes that the client marks. */
const WITH_CACHE_MARKS = /^gpt-(?:5\.(?:[6-9]|\d{2,})|[6-9]|\d{2,})/;

function knowsCacheMarks(model: string): boolean {
  return WITH_CACHE_MARKS.test(model);
}

/**
 * Asks for thoughts in encrypted form, because the client sends them back instead of OpenAI keeping them.
 * @returns whether the model thinks
 */
function printReasoning({ reasoning }: Conversation, body: JsonObject): boolean {
  if (reasoning?.isEnabled !== true) return false;
  const effort = effortOf(reasoning);
  const summary = summaryOf(reasoning.display);
  body["reasoning"] = { effort, ...(summary === undefined ? {} : { summary }) };
  body["include"] = ["reasoning.encrypted_content"];
  return effort !== "none";
}

function summaryOf(display: string | undefined): string | undefined {
  if (display === "auto" || display === "concise" || display === "detailed") return display;
  return display === "summarized" ? "auto" : undefined;
}

interface SamplingContext {
  readonly losses: Losses;
  readonly isThinking: boolean;
}

function printSampling(
  sampling: Conversation["sampling"],
  body: JsonObject,
  { losses, isThinking }: SamplingContext,
): void {
  if ((sampling.choices ?? 1) > 1) throw invalidRequest("n greater than 1 cannot be translated for this provider");
  const { maxTokens, temperature, topP } = sampling;
  if (maxTokens !== undefined) body["max_output_tokens"] = Math.max(maxTokens, MIN_OUTPUT_TOKENS);
  for (const [name, value] of Object.entries({ temperature, top_p: topP })) {
    if (value === undefined) continue;
    // Models that think refuse both.
    if (isThinking) losses.add(name);
    else body[name] = value;
  }
  const { stop, topK: top_k, seed, presencePenalty, frequencyPenalty } = sampling;
  const unknown = { stop, top_k, seed, presence_penalty: presencePenalty, frequency_penalty: frequencyPenalty };
  for (const [name, value] of Object.entries(unknown)) if (value !== undefined) losses.add(name);
}

function printTools({ tools, toolChoice, parallelCalls }: Conversation, body: JsonObject, losses: Losses): void {
  const printed = tools.flatMap((tool) => printTool(tool, losses));
  // Providers refuse both of the settings without tools.
  if (printed.length === 0) return;
  body["tools"] = printed;
  if (toolChoice !== undefined) body["tool_choice"] = printChoice(toolChoice, tools);
  if (parallelCalls !== undefined) body["parallel_tool_calls"] = parallelCalls;
}

function printTool(tool: Tool, losses: Losses): JsonObject[] {
  if (tool.kind === "function") return [printFunction(tool)];
  if (tool.vendor === "openai") return [tool.value];
  losses.add(tool.path);
  return [];
}

function printFunction({ name, description, schema, strict, isFreeText }: FunctionTool): JsonObject {
  const described = description === undefined ? {} : { description };
  if (isFreeText === true) return { type: "custom", name, ...described };
  // Schemas are strict by default in this format, and few schemas of other clients meet the rules for that.
  return { type: "function", name, ...described, parameters: schema, strict: strict ?? false };
}

function printChoice(choice: ToolChoice, tools: readonly Tool[]): string | JsonObject {
  if (choice.kind !== "required") return choice.kind;
  const [name, ...others] = choice.names ?? [];
  if (name === undefined) return "required";
  const named = (each: string): JsonObject => {
    const isFreeText = tools.some((tool) => tool.kind === "function" && tool.name === each && tool.isFreeText);
    return { type: isFreeText ? "custom" : "function", name: each };
  };
  if (others.length === 0) return named(name);
  return { type: "allowed_tools", mode: "required", tools: [name, ...others].map(named) };
}

function printOutput({ name, schema, strict }: NonNullable<Conversation["output"]>): JsonObject {
  if (schema === undefined) return { type: "json_object" };
  return {
    type: "json_schema",
    name: name ?? "structured_output",
    schema,
    ...(strict === undefined ? {} : { strict }),
  };
}

/**
 * Prints a conversation as a request of the Gemini API. Model and streaming are not in the body; the path of the
 * provider has them.
 */
import type { Conversation, FunctionTool, ToolChoice } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { objectOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { PrintContext, PrintedRequest } from "../chat-format.ts";
import { printGenerationConfig } from "./print-settings.ts";
import { printSchema } from "./print-schema.ts";
import { printTurns } from "./print-turns.ts";
import { generationOf, needsSignatures } from "./generation.ts";
import { ToolNames } from "./tool-names.ts";

export function printRequest(conversation: Conversation, { losses }: PrintContext): PrintedRequest {
  const { turns, system, user } = conversation;
  const extra = readVendorFields(conversation, losses);
  const names = new ToolNames();
  const body: JsonObject = {
    contents: printTurns(turns, {
      losses,
      needsSignatures: needsSignatures(conversation.model),
      hasMediaResults: generationOf(conversation.model) >= 3,
      toolName: (name) => names.print(name),
    }),
  };
  if (extra["cachedContent"] === undefined) {
    if (system.length > 0) body["systemInstruction"] = { parts: system.map(({ text }) => ({ text })) };
    printTools(conversation, body, { losses, names });
  } else nameCached(conversation, losses);
  const { thinkingConfig, ...rest } = extra;
  const generationConfig = printGenerationConfig(conversation, thinkingConfig, losses);
  if (Object.keys(generationConfig).length > 0) body["generationConfig"] = generationConfig;
  if (user !== undefined) losses.add("user");
  for (const [name, value] of Object.entries(rest)) body[name] = value;
  return { body, ...(names.renamed.size === 0 ? {} : { toolNames: names.renamed }) };
}

/** Fields of the Gemini API that clients of other formats may send beside their own, by both of their spellings. */
const VENDOR_FIELDS: ReadonlyMap<string, string> = new Map([
  ["cachedContent", "cachedContent"],
  ["cached_content", "cachedContent"],
  ["safetySettings", "safetySettings"],
  ["safety_settings", "safetySettings"],
  ["labels", "labels"],
  ["thinking_config", "thinkingConfig"],
  ["thinkingConfig", "thinkingConfig"],
]);

/** Returns the fields for this API; names the others as losses. */
function readVendorFields({ extra }: Conversation, losses: Losses): Record<string, Json | undefined> {
  const fields: Record<string, Json | undefined> = {};
  for (const [name, value] of Object.entries(extra.fields)) {
    const known = VENDOR_FIELDS.get(name);
    if (known === undefined) losses.add(name);
    else fields[known] = value;
  }
  return fields;
}

/** The API refuses these beside cached content, which has its own. */
function nameCached({ system, tools, toolChoice }: Conversation, losses: Losses): void {
  if (system.length > 0) losses.add("system");
  if (tools.length > 0) losses.add("tools");
  if (toolChoice !== undefined) losses.add("tool_choice");
}

function printTools(
  { tools, toolChoice, parallelCalls }: Conversation,
  body: JsonObject,
  { losses, names }: { losses: Losses; names: ToolNames },
): void {
  const printed: JsonObject[] = [];
  const functions: JsonObject[] = [];
  for (const tool of tools) {
    if (tool.kind === "function") functions.push(printFunction(tool, names));
    else if (tool.vendor === "google") printed.push(tool.value);
    else losses.add(tool.path);
  }
  if (functions.length > 0) printed.unshift({ functionDeclarations: functions });
  if (printed.length > 0) body["tools"] = printed;
  if (functions.length > 0 && toolChoice !== undefined)
    body["toolConfig"] = { functionCallingConfig: printChoice(toolChoice, names) };
  if (parallelCalls === false) losses.add("parallel_tool_calls");
}

const FREE_TEXT: JsonObject = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };

/** The API refuses an object without properties, so a tool without parameters has no schema. */
function printFunction({ name, description, schema, isFreeText }: FunctionTool, names: ToolNames): JsonObject {
  const parameters = isFreeText === true ? FREE_TEXT : printSchema(schema);
  const isEmpty =
    Object.keys(objectOf(parameters["properties"]) ?? {}).length === 0 && parameters["anyOf"] === undefined;
  return {
    name: names.print(name),
    ...(description === undefined ? {} : { description }),
    ...(isEmpty ? {} : { parameters }),
  };
}

function printChoice(choice: ToolChoice, names: ToolNames): JsonObject {
  if (choice.kind !== "required") return { mode: choice.kind === "none" ? "NONE" : "AUTO" };
  if (choice.names === undefined) return { mode: "ANY" };
  return { mode: "ANY", allowedFunctionNames: choice.names.map((name) => names.print(name)) };
}

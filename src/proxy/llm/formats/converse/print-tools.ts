/** Prints tools and the choice among them for Converse. `print-request.ts` uses it. */
import type { Conversation, Tool, ToolChoice } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { stringOf, type JsonObject } from "../../shared/json.ts";
import type { CacheMarks } from "./cache-marks.ts";
import type { Family } from "./model.ts";
import type { AllowedNames } from "../shared/allowed-names.ts";

/** A history with calls is refused without tools, so a request that has none gets this one. */
const PLACEHOLDER: JsonObject = {
  toolSpec: {
    name: "unavailable_tool",
    description: "This tool stands for tools of earlier turns that are gone. It must not be called.",
    inputSchema: { json: { type: "object", properties: {} } },
  },
};

/** The input of a tool that takes text: formats that know only objects carry it in one member. */
const FREE_TEXT: JsonObject = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };

/** Matches tools of Anthropic that the client runs; Bedrock takes them in a field of the model. */
const CLIENT_SIDE = /^(?:computer|bash|text_editor|memory|tool_search_tool)_/;

export interface ToolsContext {
  readonly family: Family;
  readonly names: AllowedNames;
  readonly marks: CacheMarks;
  readonly losses: Losses;
  readonly isThinking: boolean;
  /** Whether the messages hold calls or results. */
  readonly hasCalls: boolean;
}

export interface PrintedTools {
  readonly toolConfig?: JsonObject;
  /** Members of `additionalModelRequestFields`. */
  readonly fields: JsonObject;
}

export function printTools({ tools, toolChoice, parallelCalls }: Conversation, context: ToolsContext): PrintedTools {
  const { family, hasCalls, losses } = context;
  const fields: JsonObject = {};
  const vendorTools = tools.flatMap((tool) => printVendorTool(tool, context));
  if (vendorTools.length > 0) fields["tools"] = vendorTools;
  const printed = printSpecs(tools, context);
  if (printed.length === 0 && !hasCalls) return { fields };
  if (printed.length === 0) return { toolConfig: { tools: [PLACEHOLDER] }, fields };
  const choice = printChoice(toolChoice, context);
  if (parallelCalls === false && toolChoice?.kind !== "none") {
    // Converse has no such setting, and it refuses a choice in both places.
    if (family === "claude") return { toolConfig: { tools: printed }, fields: { ...fields, ...single(choice) } };
    losses.add("parallel_tool_calls");
  }
  return { toolConfig: { tools: printed, ...(choice === undefined ? {} : { toolChoice: choice }) }, fields };
}

function printSpecs(tools: readonly Tool[], { family, names, marks, losses }: ToolsContext): JsonObject[] {
  const printed: JsonObject[] = [];
  for (const tool of tools) {
    if (tool.kind !== "function") continue;
    const { description = "", schema, isFreeText, strict, cache } = tool;
    const json = isFreeText === true ? FREE_TEXT : schema;
    printed.push({
      toolSpec: {
        name: names.allowed(tool.name),
        ...(description === "" ? {} : { description }),
        inputSchema: { json: json["type"] === undefined ? { ...json, type: "object" } : json },
      },
    });
    if (strict === true) losses.add("tools.strict");
    // Nova caches system and messages alone.
    if (cache !== undefined && family === "nova") losses.add("tools cache mark");
    else if (cache !== undefined) marks.addTo(printed, cache, "tools");
  }
  return printed;
}

function printVendorTool(tool: Tool, { family, losses }: ToolsContext): JsonObject[] {
  if (tool.kind !== "vendor") return [];
  const isTaken =
    family === "claude" && tool.vendor === "anthropic" && CLIENT_SIDE.test(stringOf(tool.value["type"]) ?? "");
  if (isTaken) return [tool.value];
  losses.add(tool.path);
  return [];
}

function printChoice(
  choice: ToolChoice | undefined,
  { names, isThinking, losses }: ToolsContext,
): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (choice.kind === "auto") return { auto: {} };
  if (choice.kind === "none") {
    losses.add("tool_choice");
    return undefined;
  }
  if (isThinking) {
    losses.add("tool_choice");
    return { auto: {} };
  }
  const [name, ...others] = choice.names ?? [];
  if (others.length > 0) losses.add("tool_choice.allowed_tools");
  return name === undefined || others.length > 0 ? { any: {} } : { tool: { name: names.allowed(name) } };
}

/** Rewrites a choice in the words of Claude, which can forbid calls in parallel. */
function single(choice: JsonObject | undefined): JsonObject {
  const named = choice?.["tool"];
  const type = named === undefined ? (choice?.["any"] === undefined ? "auto" : "any") : "tool";
  return { tool_choice: { type, ...(typeof named === "object" ? named : {}), disable_parallel_tool_use: true } };
}

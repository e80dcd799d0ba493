/** Prints a conversation as a request of the Anthropic Messages API, for clients of the other formats. */
import { argumentsObject } from "../../conversation/arguments.ts";
import {
  callIds,
  type CacheMark,
  type Conversation,
  type FilePart,
  type Part,
  type ResultPart,
  type Source,
  type SystemText,
  type Tool,
  type ToolChoice,
} from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import type { PrintContext, PrintedRequest } from "../chat-format.ts";
import { AllowedNames } from "../shared/allowed-names.ts";
import { printOutputSchema, withOutput } from "../shared/output-schema.ts";
import { renameTools, toolNamesIn } from "../shared/tool-names.ts";
import { printExtra } from "../shared/extra.ts";
import { printSampling, printThinking } from "./thinking.ts";

const DEFAULT_MAX_TOKENS = 4096;
/** No other format of this vendor has clients, so there is nothing to hand on. */
const NO_FIELDS: ReadonlySet<string> = new Set();

/** Settings without a counterpart, with their names for clients. */
const UNKNOWN_SETTINGS = [
  ["seed", "seed"],
  ["presencePenalty", "presence_penalty"],
  ["frequencyPenalty", "frequency_penalty"],
] as const;

export function printRequest(given: Conversation, { losses, tags }: PrintContext): PrintedRequest {
  const names = new AllowedNames(toolNamesIn(given));
  const { originals } = names;
  const conversation = originals === undefined ? given : renameTools(given, names);
  const { model, streaming, sampling, user } = conversation;
  const system = withOutput(conversation);
  if ((sampling.choices ?? 1) > 1) throw invalidRequest("n greater than 1 cannot be translated for this provider");
  const maxTokens = sampling.maxTokens ?? DEFAULT_MAX_TOKENS;
  for (const [key, name] of UNKNOWN_SETTINGS) if (sampling[key] !== undefined) losses.add(name);
  printExtra(conversation, { target: "anthropic", known: NO_FIELDS, losses });
  const context = { losses, calls: new AllowedNames(callIds(conversation.turns)) };
  const messages = conversation.turns.map(({ role, parts }) => ({
    role,
    content: parts.flatMap((part) => printPart(part, context)),
  }));
  const body: JsonObject = {
    model,
    max_tokens: maxTokens,
    messages: messages.filter(({ content }) => content.length > 0),
  };
  if (system.length > 0) body["system"] = printSystem(system);
  const { thinking, effort } = printThinking(conversation.reasoning, {
    model,
    tags,
    maxTokens,
    turns: conversation.turns,
    losses,
  });
  const { temperature, topP, topK } = printSampling(conversation, { isThinking: thinking !== undefined, tags, losses });
  if (temperature !== undefined) body["temperature"] = temperature;
  if (topP !== undefined) body["top_p"] = topP;
  if (topK !== undefined) body["top_k"] = topK;
  if (streaming) body["stream"] = true;
  if (sampling.stop !== undefined) body["stop_sequences"] = [...sampling.stop];
  if (user !== undefined) body["metadata"] = { user_id: user };
  addTools(conversation, body, { isThinking: thinking !== undefined, losses });
  if (thinking !== undefined) body["thinking"] = thinking;
  const config = { ...(effort === undefined ? {} : { effort }), ...printOutput(conversation.output) };
  if (Object.keys(config).length > 0) body["output_config"] = config;
  return { body, ...(originals === undefined ? {} : { toolNames: originals }) };
}

interface PartContext {
  readonly losses: Losses;
  /** Identifiers of calls; those of other vendors have characters that are refused. */
  readonly calls: AllowedNames;
}

function printSystem(system: readonly SystemText[]): string | JsonObject[] {
  if (system.every(({ cache }) => cache === undefined)) return system.map(({ text }) => text).join("\n");
  return system.map(({ text, cache }) => ({ type: "text", text, ...printCache(cache) }));
}

function printCache(cache: CacheMark | undefined): JsonObject {
  if (cache === undefined) return {};
  return { cache_control: { type: "ephemeral", ...(cache.ttl === undefined ? {} : { ttl: cache.ttl }) } };
}

function printPart(part: Part, context: PartContext): JsonObject[] {
  const lose = (): JsonObject[] => {
    context.losses.add(part.path ?? part.kind);
    return [];
  };
  const cache = printCache(part.cache);
  switch (part.kind) {
    case "text":
    case "refusal":
      // Providers refuse empty texts.
      return part.text === "" ? [] : [{ type: "text", text: part.text, ...cache }];
    case "image":
      return [{ type: "image", source: printSource(part.source, part.path), ...cache }];
    case "file":
      return [{ ...printDocument(part), ...cache }];
    case "call":
      return [{ ...printCall(part, context), ...cache }];
    case "result":
      return [{ ...printResult(part, context), ...cache }];
    case "reasoning":
      if (part.signature?.vendor !== "anthropic") return lose();
      return [{ type: "thinking", thinking: part.text, signature: part.signature.value }];
    case "redacted":
      return part.data.vendor === "anthropic" ? [{ type: "redacted_thinking", data: part.data.value }] : lose();
    case "audio":
      return lose();
    case "vendor":
      return part.vendor === "anthropic" ? [part.value] : lose();
  }
}

function printSource(source: Source, path: string | undefined): JsonObject {
  switch (source.kind) {
    case "data":
      return { type: "base64", media_type: source.mediaType, data: source.data };
    case "url":
      return { type: "url", url: source.url };
    case "text":
      return { type: "text", media_type: "text/plain", data: source.text };
    case "id":
      if (source.vendor === "anthropic") return { type: "file", file_id: source.id };
      throw invalidRequest(`${path ?? "a file"} names a file that this provider does not have`);
  }
}

function printDocument({ source, name, path, citations, context }: FilePart): JsonObject {
  const isText = source.kind === "data" && source.mediaType.startsWith("text/");
  const readable: Source = isText
    ? { kind: "text", text: Buffer.from(source.data, "base64").toString("utf8"), mediaType: "text/plain" }
    : source;
  return {
    type: "document",
    source: printSource(readable, path),
    ...(name === undefined ? {} : { title: name }),
    ...(context === undefined ? {} : { context }),
    ...(citations === undefined ? {} : { citations: { enabled: citations } }),
  };
}

function printCall(
  { id, name, arguments: text, isFreeText, path }: Part & { kind: "call" },
  { losses, calls }: PartContext,
): JsonObject {
  const input = isFreeText === true ? { input: text } : argumentsObject(text);
  if (input === undefined) losses.add(path ?? name);
  return { type: "tool_use", id: calls.allowed(id), name, input: input ?? {} };
}

function printResult({ id, parts, isPlain, isError }: ResultPart, context: PartContext): JsonObject {
  const [first] = parts;
  const content =
    isPlain === true && first?.kind === "text" ? first.text : parts.flatMap((part) => printPart(part, context));
  return {
    type: "tool_result",
    tool_use_id: context.calls.allowed(id),
    content,
    ...(isError === true ? { is_error: true } : {}),
  };
}

function addTools(
  { tools, toolChoice, parallelCalls }: Conversation,
  body: JsonObject,
  { isThinking, losses }: { isThinking: boolean; losses: Losses },
): void {
  const printed = tools.flatMap((tool) => printTool(tool, losses));
  // Providers refuse a tool_choice without tools.
  if (printed.length === 0) return;
  body["tools"] = printed;
  const choice = printChoice(toolChoice, isThinking, losses);
  if (parallelCalls === false && choice?.["type"] !== "none")
    body["tool_choice"] = { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
  else if (choice !== undefined) body["tool_choice"] = choice;
}

function printTool(tool: Tool, losses: Losses): JsonObject[] {
  if (tool.kind === "vendor") {
    if (tool.vendor === "anthropic") return [tool.value];
    losses.add(tool.path);
    return [];
  }
  const { name, description, schema, isFreeText, strict, cache } = tool;
  const input = isFreeText === true ? FREE_TEXT : schema;
  if (strict === true) losses.add("tools.strict");
  return [
    {
      name,
      ...(description === undefined ? {} : { description }),
      // Clients of other formats may leave the type out, which can only be this one.
      input_schema: input["type"] === undefined ? { ...input, type: "object" } : input,
      ...printCache(cache),
    },
  ];
}

/** The input of a tool that takes text: formats that know only objects carry it in one member. */
const FREE_TEXT: JsonObject = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };

function printChoice(choice: ToolChoice | undefined, isThinking: boolean, losses: Losses): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (choice.kind !== "required") return { type: choice.kind };
  if (isThinking) {
    losses.add("tool_choice");
    return { type: "auto" };
  }
  const [name, ...others] = choice.names ?? [];
  if (name === undefined) return { type: "any" };
  if (others.length > 0) losses.add("tool_choice.allowed_tools");
  return others.length > 0 ? { type: "any" } : { type: "tool", name };
}

function printOutput(output: Conversation["output"]): JsonObject {
  const schema = printOutputSchema(output);
  return schema === undefined ? {} : { format: { type: "json_schema", schema } };
}

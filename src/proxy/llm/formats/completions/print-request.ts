/** Prints a conversation as a chat completions request, for clients of the other formats. */
import { hash } from "node:crypto";
import { effortOf } from "../../conversation/reasoning.ts";
import type {
  CallPart,
  Conversation,
  FunctionTool,
  Part,
  ResultPart,
  Tool,
  ToolChoice,
  Turn,
} from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import type { PrintContext, PrintedRequest } from "../chat-format.ts";
import { printThoughtSignature } from "./thought-signature.ts";
import { printUrl } from "../shared/data-url.ts";
import { printFileName } from "../shared/file-name.ts";
import { AllowedNames } from "../shared/allowed-names.ts";
import { printExtra } from "../shared/extra.ts";
import { renameTools, toolNamesIn } from "../shared/tool-names.ts";

/** Fields of the Responses format that chat completions know under the same name and with the same meaning. */
const SHARED_FIELDS: ReadonlySet<string> = new Set(
  "metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention logit_bias verbosity".split(" "),
);

/** OpenAI refuses a longer name of the end user. A digest of this length still tells users apart. */
const MAX_USER = 64;

export function printRequest(given: Conversation, { losses }: PrintContext): PrintedRequest {
  const names = new AllowedNames(toolNamesIn(given));
  const { originals } = names;
  const conversation = originals === undefined ? given : renameTools(given, names);
  const { model, streaming, turns, sampling, output, user } = conversation;
  const messages = [...printSystem(conversation), ...turns.flatMap((turn) => printTurn(turn, model, losses))];
  if (messages.length === 0) throw invalidRequest("the request has no messages");
  const body: JsonObject = { model, messages };
  if (streaming) body["stream"] = true;
  printSampling(sampling, body, losses);
  printTools(conversation, body, losses);
  const effort = printEffort(conversation);
  if (effort !== undefined) body["reasoning_effort"] = effort;
  if (output !== undefined) body["response_format"] = printOutput(output);
  if (user !== undefined) body["user"] = user.length > MAX_USER ? hash("sha256", user, "hex") : user;
  const extra = printExtra(conversation, { target: "openai", known: SHARED_FIELDS, losses });
  return { body: { ...body, ...extra }, ...(originals === undefined ? {} : { toolNames: originals }) };
}

/** Prints one message for each run of instructions of one role. */
function printSystem({ system }: Conversation): JsonObject[] {
  const messages: { role: string; content: string }[] = [];
  for (const { role, text } of system) {
    const last = messages.at(-1);
    if (last?.role === role) last.content += `\n${text}`;
    else messages.push({ role, content: text });
  }
  return messages;
}

/**
 * Results of tools are messages of their own, in front of what the user says in the same turn. They hold nothing but
 * texts, so the images and files in them begin what the user says.
 */
function printTurn({ role, parts }: Turn, model: string, losses: Losses): JsonObject[] {
  if (role === "assistant") return printAssistant(parts, model, losses);
  const results = parts.filter((part) => part.kind === "result");
  const messages = results.map((part) => printResult(part, losses));
  const media = results.flatMap(({ parts: found }) => found.filter(({ kind }) => kind !== "text"));
  const others = parts.filter(({ kind }) => kind !== "result");
  const content = [...media, ...others].flatMap((part) => printContent(part, losses));
  return content.length === 0 ? messages : [...messages, { role: "user", content: simplified(content) }];
}

/** Writes a single text without a list, which more providers understand. */
function simplified(content: readonly JsonObject[]): string | JsonObject[] {
  const [first] = content;
  return content.length === 1 && typeof first?.["text"] === "string" ? first["text"] : [...content];
}

function printResult({ id, parts, path, isError }: ResultPart, losses: Losses): JsonObject {
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  // A result without a path says so in its text.
  if (isError === true && path !== undefined) losses.add(`${path}.is_error`);
  return { role: "tool", tool_call_id: id, content: texts.join("\n") };
}

function printContent(part: Part, losses: Losses): JsonObject[] {
  switch (part.kind) {
    case "text":
      return part.text === "" ? [] : [{ type: "text", text: part.text }];
    case "refusal":
      return [{ type: "text", text: part.text }];
    case "image": {
      const url = requireUrl(printUrl(part.source), part.path);
      return [{ type: "image_url", image_url: { url, ...(part.detail === undefined ? {} : { detail: part.detail }) } }];
    }
    case "file": {
      const { source, name } = part;
      if (source.kind === "text") return [{ type: "text", text: source.text }];
      if (source.kind === "id" && source.vendor === "openai") return [{ type: "file", file: { file_id: source.id } }];
      if (source.kind !== "data") throw invalidRequest(`${part.path ?? "a file"} must be inline for this provider`);
      return [
        {
          type: "file",
          file: { filename: printFileName(name, source.mediaType), file_data: requireUrl(printUrl(source), part.path) },
        },
      ];
    }
    case "audio": {
      const { source } = part;
      if (source.kind !== "data") throw invalidRequest(`${part.path ?? "audio"} must be inline for this provider`);
      const format = source.mediaType.slice(source.mediaType.indexOf("/") + 1);
      return [{ type: "input_audio", input_audio: { data: source.data, format } }];
    }
    default:
      losses.add(part.path ?? part.kind);
      return [];
  }
}

function requireUrl(url: string | undefined, path: string | undefined): string {
  if (url === undefined) throw invalidRequest(`${path ?? "a file"} names a file that this provider does not have`);
  return url;
}

function printAssistant(parts: readonly Part[], model: string, losses: Losses): JsonObject[] {
  let text = "";
  let refusal = "";
  const calls: JsonObject[] = [];
  for (const part of parts)
    if (part.kind === "text") text += part.text;
    else if (part.kind === "refusal") refusal += part.text;
    else if (part.kind === "call") calls.push(printCall(part, model));
    else losses.add(part.path ?? part.kind);
  if (text === "" && refusal === "" && calls.length === 0) return [];
  return [
    {
      role: "assistant",
      content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
      ...(refusal === "" ? {} : { refusal }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ];
}

function printCall(call: CallPart, model: string): JsonObject {
  const { id, name, arguments: given, isFreeText } = call;
  const text = isFreeText === true ? JSON.stringify(given) : given.trim() === "" ? "{}" : given;
  return { id, type: "function", function: { name, arguments: text }, ...printThoughtSignature(call, model) };
}

function printSampling(sampling: Conversation["sampling"], body: JsonObject, losses: Losses): void {
  const known: JsonObject = {
    max_completion_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    stop: sampling.stop === undefined ? undefined : [...sampling.stop],
    seed: sampling.seed,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    n: sampling.choices,
  };
  for (const [name, value] of Object.entries(known)) if (value !== undefined) body[name] = value;
  if (sampling.topK !== undefined) losses.add("top_k");
}

function printTools({ tools, toolChoice, parallelCalls }: Conversation, body: JsonObject, losses: Losses): void {
  const printed = tools.flatMap((tool) => printTool(tool, losses));
  // Providers refuse both of the settings without tools.
  if (printed.length === 0) return;
  body["tools"] = printed;
  if (toolChoice !== undefined) body["tool_choice"] = printChoice(toolChoice);
  if (parallelCalls !== undefined) body["parallel_tool_calls"] = parallelCalls;
}

function printTool(tool: Tool, losses: Losses): JsonObject[] {
  if (tool.kind === "function") return [{ type: "function", function: printFunction(tool) }];
  losses.add(tool.path);
  return [];
}

function printFunction({ name, description, schema, strict }: FunctionTool): JsonObject {
  return {
    name,
    ...(description === undefined ? {} : { description }),
    parameters: schema,
    ...(strict === undefined ? {} : { strict }),
  };
}

function printChoice(choice: ToolChoice): string | JsonObject {
  if (choice.kind !== "required") return choice.kind;
  const [name, ...others] = choice.names ?? [];
  if (name === undefined) return "required";
  const named = (each: string): JsonObject => ({ type: "function", function: { name: each } });
  if (others.length === 0) return named(name);
  return { type: "allowed_tools", allowed_tools: { mode: "required", tools: [name, ...others].map(named) } };
}

/** Matches gpt models from 5.2 on, which refuse tools together with reasoning in this format. */
const WITHOUT_REASONING = /^gpt-(?:5\.(?:[3-9]|\d{2,})|[6-9]|\d{2,})/;

function printEffort({ reasoning, model, tools }: Conversation): string | undefined {
  if (reasoning === undefined) return undefined;
  if (WITHOUT_REASONING.test(model) && tools.length > 0) return "none";
  // Models without reasoning refuse the field, so thinking that is switched off is not mentioned.
  return reasoning.isEnabled || reasoning.effort !== undefined ? effortOf(reasoning) : undefined;
}

function printOutput({ name, schema, strict }: NonNullable<Conversation["output"]>): JsonObject {
  if (schema === undefined) return { type: "json_object" };
  const described = { name: name ?? "structured_output", schema, ...(strict === undefined ? {} : { strict }) };
  return { type: "json_schema", json_schema: described };
}

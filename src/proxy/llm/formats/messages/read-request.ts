/**
 * Reads a request of the Anthropic Messages API (`POST /v1/messages`) into a conversation, and checks one that is only
 * passed on.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import { pathOf } from "../../../../lib/network/request-target.ts";
import {
  addParts,
  type Conversation,
  type OutputFormat,
  type ReasoningSettings,
  type SystemText,
  type Tool,
  type ToolChoice,
} from "../../conversation/conversation.ts";
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
import { readNativePath } from "../../shared/native-path.ts";
import { readExtra } from "../shared/extra.ts";
import { readStop } from "../shared/stop.ts";
import { readBlocks, readCache } from "./read-blocks.ts";

/** Fields that the reader understands; others are kept as fields of the vendor. */
const READ: ReadonlySet<string> = new Set(
  (
    "model messages max_tokens system metadata stop_sequences stream temperature top_p top_k tools tool_choice thinking " +
    "output_config output_format"
  ).split(" "),
);

/** Checks the parts that every reader and guard relies on; the rest is left to the provider or to the reader. */
export function parseRequest(body: JsonObject, target = ""): LlmRequest {
  readTarget(body, target);
  requireList(body["messages"], "messages").forEach((item, at) => {
    const message = requireObject(item, `messages[${at}]`);
    requireText(message["role"], `messages[${at}].role`);
    checkContent(message["content"], `messages[${at}].content`);
  });
  checkContent(body["system"], "system");
  return { body, model: readModelName(body["model"]), streaming: readBoolean(body["stream"], "stream") === true };
}

/** Clients of Vertex AI tell streaming in the path, and the version of the API in the body. */
function readTarget(body: JsonObject, target: string): void {
  const path = readNativePath(pathOf(target));
  if (path === undefined) return;
  body["stream"] = path.method === "streamRawPredict";
  body["anthropic_version"] = undefined;
}

function checkContent(content: Json | undefined, path: string): void {
  if (Array.isArray(content)) readObjects(content, path);
  else if (content !== undefined && content !== null && typeof content !== "string")
    throw invalidRequest(`${path} must be a string or a list of blocks`);
}

/** @throws ProxyError llm_request_invalid, llm_thread_unsupported */
export function readRequest(body: JsonObject, { model, streaming }: RequestContext): Conversation {
  // The messages of the turns before are known to Anthropic alone.
  if (body["thread"] !== undefined && body["thread"] !== null) throw new ProxyError("llm_thread_unsupported");
  const messages = requireList(body["messages"], "messages");
  if (messages.length === 0) throw invalidRequest("messages must not be empty");
  const conversation: Conversation = {
    model,
    streaming,
    system: readSystem(body["system"]),
    turns: [],
    tools: readObjects(body["tools"], "tools").map(readTool),
    sampling: readSampling(body),
    extra: readExtra(body, READ, "anthropic"),
  };
  messages.forEach((item, at) => {
    const path = `messages[${at}]`;
    const message = requireObject(item, path);
    const role = requireText(message["role"], `${path}.role`);
    if (role === "system") conversation.system.push(...readSystem(message["content"], `${path}.content`));
    else if (role === "user" || role === "assistant")
      addParts(conversation.turns, role, readBlocks(message["content"], `${path}.content`));
    else throw invalidRequest(`${path}.role must be user or assistant`);
  });
  addSettings(body, conversation);
  return conversation;
}

function readSystem(system: Json | undefined, path = "system"): SystemText[] {
  const role = "system";
  if (typeof system === "string") return system.trim() === "" ? [] : [{ role, text: system }];
  return readObjects(system, path).flatMap((block, at) => {
    const text = requireText(block["text"], `${path}[${at}].text`);
    return text.trim() === "" ? [] : [{ role, text, ...readCache(block, `${path}[${at}]`) } as const];
  });
}

function readSampling(body: JsonObject): Conversation["sampling"] {
  return {
    maxTokens: readCount(body["max_tokens"], "max_tokens"),
    temperature: readNumber(body["temperature"], "temperature"),
    topP: readNumber(body["top_p"], "top_p"),
    topK: readCount(body["top_k"], "top_k"),
    stop: readStop(body["stop_sequences"], "stop_sequences"),
  };
}

function addSettings(body: JsonObject, conversation: Conversation): void {
  const choice = readObject(body["tool_choice"], "tool_choice");
  if (choice !== undefined) {
    conversation.toolChoice = readToolChoice(choice);
    const isSingle = readBoolean(choice["disable_parallel_tool_use"], "tool_choice.disable_parallel_tool_use");
    if (isSingle !== undefined) conversation.parallelCalls = !isSingle;
  }
  const config = readObject(body["output_config"], "output_config");
  const reasoning = readReasoning(readObject(body["thinking"], "thinking"), config);
  if (reasoning !== undefined) conversation.reasoning = reasoning;
  const output = readOutput(config?.["format"] ?? body["output_format"]);
  if (output !== undefined) conversation.output = output;
  const user = readText(readObject(body["metadata"], "metadata")?.["user_id"], "metadata.user_id");
  if (user !== undefined) conversation.user = user;
}

function readTool(tool: JsonObject, at: number): Tool {
  const path = `tools[${at}]`;
  const name = requireText(tool["name"], `${path}.name`);
  const type = readText(tool["type"], `${path}.type`) ?? "custom";
  if (type !== "custom") return { kind: "vendor", vendor: "anthropic", name: type, value: tool, path };
  const description = readText(tool["description"], `${path}.description`);
  const strict = readBoolean(tool["strict"], `${path}.strict`);
  return {
    kind: "function",
    name,
    schema: readObject(tool["input_schema"], `${path}.input_schema`) ?? { type: "object", properties: {} },
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
    ...readCache(tool, path),
  };
}

function readToolChoice(choice: JsonObject): ToolChoice {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return { kind: choice["type"] };
    case "any":
      return { kind: "required" };
    case "tool":
      return { kind: "required", names: [requireText(choice["name"], "tool_choice.name")] };
    default:
      throw invalidRequest("tool_choice.type must be auto, any, tool or none");
  }
}

function readReasoning(
  thinking: JsonObject | undefined,
  config: JsonObject | undefined,
): ReasoningSettings | undefined {
  const effort = readText(config?.["effort"], "output_config.effort");
  const given = effort === undefined ? {} : { effort };
  const type = readText(thinking?.["type"], "thinking.type");
  // An effort without thinking says how thorough the answer should be; only thinking has a counterpart elsewhere.
  if (type === undefined) return undefined;
  const display = readText(thinking?.["display"], "thinking.display");
  const shown = display === undefined ? {} : { display };
  if (type === "disabled") return { isEnabled: false };
  if (type === "adaptive") return { isEnabled: true, isAdaptive: true, ...given, ...shown };
  if (type !== "enabled") throw invalidRequest("thinking.type must be enabled, disabled or adaptive");
  const budgetTokens = readCount(thinking?.["budget_tokens"], "thinking.budget_tokens");
  return { isEnabled: true, ...given, ...shown, ...(budgetTokens === undefined ? {} : { budgetTokens }) };
}

function readOutput(given: Json | undefined): OutputFormat | undefined {
  const format = readObject(given, "output_config.format");
  const type = readText(format?.["type"], "output_config.format.type");
  if (type !== "json_schema") return undefined;
  const schema = readObject(format?.["schema"], "output_config.format.schema");
  return schema === undefined ? {} : { schema };
}

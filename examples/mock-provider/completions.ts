/** The mock provider in the chat completions format. */
import { answer, pieces, type Answer, type Conversation, type Tool, type Turn } from "./answer.ts";
import { BadRequest, count, fields, flag, list, noOther, text, type Fields } from "./read.ts";

const ALLOWED: ReadonlySet<string> = new Set(
  (
    "model messages stream stream_options max_tokens max_completion_tokens temperature top_p stop n user seed tools " +
    "tool_choice parallel_tool_calls response_format reasoning_effort frequency_penalty presence_penalty metadata store"
  ).split(" "),
);

export function readCompletions(body: Fields): Conversation {
  noOther(body, ALLOWED);
  const model = text(body["model"], "model");
  if (model.startsWith("gpt-") && body["max_tokens"] !== undefined)
    throw new BadRequest("max_tokens is not taken by this model: use max_completion_tokens");
  const stream = flag(body["stream"], "stream");
  if (body["stream_options"] !== undefined && !stream) throw new BadRequest("stream_options needs stream");
  const limit = body["max_completion_tokens"] ?? body["max_tokens"];
  return {
    model,
    stream,
    turns: list(body["messages"], "messages").map(readTurn),
    tools: body["tools"] === undefined ? [] : list(body["tools"], "tools").map(readTool),
    maxTokens: limit === undefined || limit === null ? Number.MAX_SAFE_INTEGER : count(limit, "max_completion_tokens"),
  };
}

function readTurn(value: unknown): Turn {
  const message = fields(value, "a message");
  const { role } = message;
  if (role === "tool") text(message["tool_call_id"], "tool_call_id");
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", text: contentText(message["content"]) };
    case "user":
    case "tool":
      return { role, text: contentText(message["content"]) };
    case "assistant":
      return { role, text: message["content"] === null ? "" : contentText(message["content"] ?? "") };
    default:
      throw new BadRequest("a message has an unknown role");
  }
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content, "content")
    .map((value) => {
      const part = fields(value, "a part of content");
      return part["type"] === "text" ? text(part["text"], "text") : "";
    })
    .join(" ");
}

function readTool(value: unknown): Tool {
  const made = fields(fields(value, "a tool")["function"], "function");
  const schema = made["parameters"] === undefined ? {} : fields(made["parameters"], "parameters");
  return { name: text(made["name"], "name"), description: String(made["description"] ?? ""), schema };
}

export function printCompletion(conversation: Conversation, id: string): object {
  const made = answer(conversation);
  const message = { role: "assistant", content: made.call === undefined ? made.text : null, ...toolCalls(made, id) };
  return {
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created: 1_700_000_000,
    model: conversation.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(made) }],
    usage: usageOf(made),
  };
}

/** Data of the events, the closing one included. */
export function streamCompletion(conversation: Conversation, id: string, withUsage: boolean): string[] {
  const made = answer(conversation);
  const head = {
    id: `chatcmpl-${id}`,
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: conversation.model,
  };
  const chunk = (delta: object, finish: string | null = null): string =>
    JSON.stringify({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...(withUsage ? { usage: null } : {}),
    });
  const parts: object[] =
    made.call === undefined ? pieces(made.text).map((content) => ({ content })) : toolDeltas(made.call, id);
  const usage = withUsage ? [JSON.stringify({ ...head, choices: [], usage: usageOf(made) })] : [];
  return [
    chunk({ role: "assistant", content: "" }),
    ...parts.map((delta) => chunk(delta)),
    chunk({}, finishReason(made)),
    ...usage,
    "[DONE]",
  ];
}

function toolDeltas(call: NonNullable<Answer["call"]>, id: string): object[] {
  const start = { index: 0, id: `call_${id}`, type: "function", function: { name: call.name, arguments: "" } };
  const parts = pieces(JSON.stringify(call.input, null, 1)).map((part) => ({
    index: 0,
    function: { arguments: part },
  }));
  return [start, ...parts].map((delta) => ({ tool_calls: [delta] }));
}

function toolCalls({ call }: Answer, id: string): object {
  if (call === undefined) return {};
  const made = { name: call.name, arguments: JSON.stringify(call.input) };
  return { tool_calls: [{ id: `call_${id}`, type: "function", function: made }] };
}

function finishReason({ call, truncated }: Answer): string {
  if (call !== undefined) return "tool_calls";
  return truncated ? "length" : "stop";
}

function usageOf({ inputTokens, outputTokens }: Answer): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0 },
  };
}

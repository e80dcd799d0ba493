/** The mock provider in the messages format. */
import { answer, pieces, type Answer, type Conversation, type Tool, type Turn } from "./answer.ts";
import { BadRequest, count, fields, flag, list, noOther, text, type Fields } from "./read.ts";

const ALLOWED: ReadonlySet<string> = new Set(
  (
    "model messages system max_tokens stream stop_sequences temperature top_p top_k tools tool_choice metadata thinking " +
    "output_config"
  ).split(" "),
);

export interface NamedEvent {
  readonly type: string;
}

export function readMessages(body: Fields): Conversation {
  noOther(body, ALLOWED);
  const model = text(body["model"], "model");
  const messages = list(body["messages"], "messages").map((value) => fields(value, "a message"));
  if (messages[0]?.["role"] !== "user") throw new BadRequest("the first message must be of the user");
  const system: Turn[] = body["system"] === undefined ? [] : [{ role: "system", text: systemText(body["system"]) }];
  const tools = body["tools"] === undefined ? [] : list(body["tools"], "tools").map(readTool);
  if (body["tool_choice"] !== undefined && tools.length === 0) throw new BadRequest("tool_choice needs tools");
  return {
    model,
    stream: flag(body["stream"], "stream"),
    turns: [...system, ...messages.flatMap(readTurns)],
    tools,
    maxTokens: count(body["max_tokens"], "max_tokens"),
  };
}

function systemText(system: unknown): string {
  if (typeof system === "string") return text(system, "system");
  return list(system, "system")
    .map((value) => text(fields(value, "a system block")["text"], "text"))
    .join("\n");
}

function readTurns(message: Fields): Turn[] {
  const { role, content } = message;
  if (role !== "user" && role !== "assistant") throw new BadRequest("a message has an unknown role");
  if (typeof content === "string") return [{ role, text: text(content, "content") }];
  return list(content, "content").map((value): Turn => {
    const block = fields(value, "a block of content");
    switch (block["type"]) {
      case "text":
        return { role, text: text(block["text"], "text") };
      case "image":
        fields(block["source"], "source");
        return { role, text: "" };
      case "tool_use":
        if (role !== "assistant") throw new BadRequest("tool_use belongs to the assistant");
        text(block["id"], "id");
        return { role, text: text(block["name"], "name") };
      case "tool_result":
        if (role !== "user") throw new BadRequest("tool_result belongs to the user");
        text(block["tool_use_id"], "tool_use_id");
        return { role: "tool", text: resultText(block["content"]) };
      default:
        throw new BadRequest("a block of content has an unknown type");
    }
  });
}

function resultText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content, "content")
    .map((value) => String(fields(value, "a block of a result")["text"] ?? ""))
    .join(" ");
}

function readTool(value: unknown): Tool {
  const tool = fields(value, "a tool");
  const schema = fields(tool["input_schema"], "input_schema");
  return { name: text(tool["name"], "name"), description: String(tool["description"] ?? ""), schema };
}

export function printMessage(conversation: Conversation, id: string): object {
  const made = answer(conversation);
  const block =
    made.call === undefined
      ? { type: "text", text: made.text }
      : { type: "tool_use", id: `toolu_${id}`, name: made.call.name, input: made.call.input };
  return {
    ...head(conversation, id),
    content: [block],
    stop_reason: stopReason(made),
    stop_sequence: null,
    usage: { input_tokens: made.inputTokens, output_tokens: made.outputTokens },
  };
}

export function streamMessage(conversation: Conversation, id: string): NamedEvent[] {
  const made = answer(conversation);
  const usage = { input_tokens: made.inputTokens, output_tokens: 1 };
  const message = { ...head(conversation, id), content: [], stop_reason: null, stop_sequence: null, usage };
  const [block, deltas] = blockOf(made, id);
  return [
    { type: "message_start", message } as NamedEvent,
    { type: "content_block_start", index: 0, content_block: block } as NamedEvent,
    { type: "ping" },
    ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta }) as NamedEvent),
    { type: "content_block_stop", index: 0 } as NamedEvent,
    {
      type: "message_delta",
      delta: { stop_reason: stopReason(made), stop_sequence: null },
      usage: { output_tokens: made.outputTokens },
    } as NamedEvent,
    { type: "message_stop" },
  ];
}

function blockOf({ call, text: words }: Answer, id: string): [object, object[]] {
  if (call === undefined)
    return [{ type: "text", text: "" }, pieces(words).map((part) => ({ type: "text_delta", text: part }))];
  const deltas = pieces(JSON.stringify(call.input, null, 1)).map((part) => ({
    type: "input_json_delta",
    partial_json: part,
  }));
  return [{ type: "tool_use", id: `toolu_${id}`, name: call.name, input: {} }, deltas];
}

function head({ model }: Conversation, id: string): object {
  return { id: `msg_${id}`, type: "message", role: "assistant", model };
}

function stopReason({ call, truncated }: Answer): string {
  if (call !== undefined) return "tool_use";
  return truncated ? "max_tokens" : "end_turn";
}

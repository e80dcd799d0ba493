/** The texts of Responses bodies (OpenAI API) that prompt guards look at. */
import { objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import {
  flatText,
  objectsIn,
  TextCollector,
  type FlatMessage,
  type FormatTexts,
  type GuardScope,
  type PartTexts,
  type StreamedText,
  type TextPlace,
} from "../guarded-text.ts";

function keyOf({ type }: JsonObject): string | undefined {
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
    case "summary_text":
    case "reasoning_text":
      return "text";
    case "refusal":
      return "refusal";
    // Sessions carry speech with its transcript.
    case "input_audio":
    case "output_audio":
    case "audio":
      return "transcript";
    default:
      return undefined;
  }
}

const PARTS: PartTexts = { keyOf, separator: " " };
const SYSTEM_PARTS: PartTexts = { keyOf, separator: "\n" };
const SYSTEM: TextPlace = { scope: "SystemPrompt", role: "system" };
const SYSTEM_ROLES: ReadonlySet<string> = new Set(["system", "developer"]);

export const responsesTexts: FormatTexts = {
  requestTexts(body) {
    const collector = new TextCollector();
    collector.member(body, "instructions", SYSTEM);
    collector.member(body, "input", { scope: "Messages", role: "user" });
    for (const item of objectsIn(body["input"])) addItem(collector, item);
    const prompt = objectOf(body["prompt"]);
    if (prompt !== undefined) collector.memberValues(prompt, "variables", { scope: "Messages", role: "user" });
    return collector.texts;
  },

  requestMessages(body) {
    const messages: FlatMessage[] = [];
    const instructions = stringOf(body["instructions"]);
    if (instructions !== undefined && instructions !== "") messages.push({ role: "system", content: instructions });
    if (typeof body["input"] === "string") messages.push({ role: "user", content: body["input"] });
    for (const item of objectsIn(body["input"])) {
      const role = roleOf(item);
      if (role === undefined) continue;
      messages.push({ role, content: flatText(item["content"], SYSTEM_ROLES.has(role) ? SYSTEM_PARTS : PARTS) });
    }
    return messages;
  },

  replaceMessages(body, messages) {
    delete body["instructions"];
    body["input"] = messages.map(({ role, content }) => ({ type: "message", role, content }));
  },

  answerTexts(body) {
    const collector = new TextCollector();
    for (const item of objectsIn(body["output"])) addItem(collector, item);
    return collector.texts;
  },

  answerChoices(body) {
    const collector = new TextCollector();
    const items = objectsIn(body["output"]).filter((item) => item["type"] === "message");
    const text = items.map(({ content }) => flatText(content, PARTS)).join(" ");
    collector.choice({ scope: "Messages", role: "assistant" }, text, (masked) => {
      const [first, ...rest] = items;
      if (first !== undefined) first["content"] = [{ type: "output_text", text: masked, annotations: [] }];
      for (const item of rest) item["content"] = [];
    });
    return collector.texts;
  },

  streamedTexts: (event) => textsOfEvent(event),
};

/** @returns undefined for an item that is not a message */
function roleOf({ type, role }: JsonObject): string | undefined {
  return type === undefined || type === "message" ? (stringOf(role) ?? "user").toLowerCase() : undefined;
}

function addItem(collector: TextCollector, item: JsonObject): void {
  const role = roleOf(item);
  if (role !== undefined) {
    const isSystem = SYSTEM_ROLES.has(role);
    const place: TextPlace = { scope: isSystem ? "SystemPrompt" : "Messages", role };
    return collector.content(item, "content", place, isSystem ? SYSTEM_PARTS : PARTS);
  }
  if (item["type"] === "reasoning") return addReasoning(collector, item);
  const input: TextPlace = { scope: "ToolInput", role: "assistant" };
  const output: TextPlace = { scope: "ToolOutput", role: "tool" };
  collector.argumentsText(item, "arguments", input);
  for (const key of ["input", "code", "action", "operation", "query", "queries"])
    collector.memberValues(item, key, input);
  if (Array.isArray(item["output"]))
    collector.content(item, "output", output, { ...PARTS, other: (part) => addOutput(collector, part, output) });
  else collector.memberValues(item, "output", output);
  for (const result of [...objectsIn(item["results"]), ...objectsIn(item["outputs"])])
    addOutput(collector, result, output);
}

/** Members of a result that are texts; the others are files, pictures and names. */
function addOutput(collector: TextCollector, part: JsonObject, place: TextPlace): void {
  for (const key of ["text", "logs", "stdout", "stderr"]) collector.member(part, key, place);
}

/** The encrypted content of reasoning cannot be read; its summary can, and no signature covers it. */
function addReasoning(collector: TextCollector, item: JsonObject): void {
  const place: TextPlace = { scope: "Messages", role: "assistant" };
  for (const key of ["summary", "content"]) if (Array.isArray(item[key])) collector.content(item, key, place, PARTS);
}

const DELTAS: Readonly<Record<string, GuardScope>> = {
  "response.output_text.delta": "Messages",
  "response.refusal.delta": "Messages",
  "response.reasoning_summary_text.delta": "Messages",
  "response.reasoning_text.delta": "Messages",
  "response.output_audio_transcript.delta": "Messages",
  "response.audio.transcript.delta": "Messages",
  // Names that realtime sessions had in their beta, and what a session understood of the user's speech.
  "response.text.delta": "Messages",
  "response.audio_transcript.delta": "Messages",
  "conversation.item.input_audio_transcription.delta": "Messages",
  "session.input_transcript.delta": "Messages",
  "session.output_transcript.delta": "Messages",
  "response.function_call_arguments.delta": "ToolInput",
  "response.mcp_call_arguments.delta": "ToolInput",
  "response.custom_tool_call_input.delta": "ToolInput",
  "response.code_interpreter_call_code.delta": "ToolInput",
  "response.shell_call_command.delta": "ToolInput",
};

/** Members of events that repeat the deltas before them, by type. */
const REPEATED: Readonly<Record<string, string>> = {
  "response.output_text.done": "text",
  "response.refusal.done": "refusal",
  "response.reasoning_summary_text.done": "text",
  "response.reasoning_text.done": "text",
  "response.output_audio_transcript.done": "transcript",
  "response.text.done": "text",
  "response.audio_transcript.done": "transcript",
  "conversation.item.input_audio_transcription.completed": "transcript",
  "response.function_call_arguments.done": "arguments",
  "response.custom_tool_call_input.done": "input",
  "response.mcp_call_arguments.done": "arguments",
  "response.code_interpreter_call_code.done": "code",
  "response.shell_call_command.done": "command",
};

/** Members of events that carry arguments of calls. */
const INPUTS: ReadonlySet<string> = new Set(["arguments", "input", "code", "command"]);

function textsOfEvent(event: JsonObject): StreamedText[] {
  const type = stringOf(event["type"]) ?? "";
  const scope = Object.hasOwn(DELTAS, type) ? DELTAS[type] : undefined;
  if (scope !== undefined) return textOf(type, event, scope, "delta");
  const repeated = Object.hasOwn(REPEATED, type) ? REPEATED[type] : undefined;
  if (repeated !== undefined)
    return textOf(type, event, INPUTS.has(repeated) ? "ToolInput" : "Messages", repeated).map((text) => ({
      ...text,
      isRepeated: true,
    }));
  const other = Object.hasOwn(PIECES, type) ? PIECES[type] : undefined;
  if (other !== undefined) return other(event);
  const collector = new TextCollector();
  const item = objectOf(event["item"]);
  if (item !== undefined) addItem(collector, item);
  const part = objectOf(event["part"]);
  if (part !== undefined) addItem(collector, { role: "assistant", content: [part] });
  for (const done of objectsIn(objectOf(event["response"])?.["output"])) addItem(collector, done);
  return collector.texts.map(({ scope: part, text }, at) => ({
    lane: `${type} ${at}`,
    scope: part,
    text,
    isRepeated: true,
  }));
}

/** Readers of the events that carry text in pieces, and not as a text in `delta`. */
const PIECES: Readonly<Record<string, (event: JsonObject) => StreamedText[]>> = {
  // The transcript by its speakers, next to its deltas.
  "conversation.item.input_audio_transcription.segment": (event) =>
    textOf("conversation.item.input_audio_transcription.segment", event, "Messages", "text"),
  // The beginning of a command, which deltas go on with.
  "response.shell_call_command.added": (event) =>
    textOf("response.shell_call_command.delta", event, "ToolInput", "command"),
  "response.shell_call_output_content.delta": (event) => outputOf(event, objectsIn([event["delta"] ?? null])),
  "response.shell_call_output_content.done": (event) =>
    outputOf(event, objectsIn(event["output"])).map((text) => ({ ...text, isRepeated: true })),
};

/** Returns what a command has printed. */
function outputOf(event: JsonObject, outputs: readonly JsonObject[]): StreamedText[] {
  return outputs.flatMap((output) =>
    ["stdout", "stderr"].flatMap((key) =>
      textOf(`response.shell_call_output_content.${key}`, { ...event, [key]: output[key] }, "ToolOutput", key),
    ),
  );
}

function textOf(type: string, event: JsonObject, scope: GuardScope, key: string): StreamedText[] {
  const text = stringOf(event[key]);
  return text === undefined || text === "" ? [] : [{ lane: laneOf(type, event), scope, text }];
}

function laneOf(type: string, event: JsonObject): string {
  const place: (Json | undefined)[] = [
    event["item_id"],
    event["output_index"],
    event["content_index"],
    event["summary_index"],
    event["command_index"],
  ];
  return `${type} ${JSON.stringify(place)}`;
}

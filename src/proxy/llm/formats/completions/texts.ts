/** The texts of chat completions bodies (OpenAI API) that prompt guards look at. */
import { objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import {
  flatText,
  objectsIn,
  TextCollector,
  type FormatTexts,
  type GuardScope,
  type PartTexts,
  type StreamedText,
  type TextPlace,
} from "../guarded-text.ts";

const SCOPES: Readonly<Record<string, GuardScope>> = {
  system: "SystemPrompt",
  developer: "SystemPrompt",
  tool: "ToolOutput",
  function: "ToolOutput",
};

function keyOf({ type, refusal }: JsonObject): string | undefined {
  if (type === "text" || type === "input_text") return "text";
  return type === "refusal" && typeof refusal === "string" ? "refusal" : undefined;
}

function partsOf(scope: GuardScope): PartTexts {
  return { keyOf, separator: scope === "SystemPrompt" ? "\n" : " " };
}

function placeOf({ role }: JsonObject): TextPlace {
  const name = (stringOf(role) ?? "user").toLowerCase();
  return { scope: Object.hasOwn(SCOPES, name) ? (SCOPES[name] as GuardScope) : "Messages", role: name };
}

export const completionsTexts: FormatTexts = {
  requestTexts(body) {
    const collector = new TextCollector();
    for (const message of objectsIn(body["messages"])) addMessage(collector, message);
    const prediction = objectOf(body["prediction"]);
    if (prediction !== undefined)
      collector.content(prediction, "content", { scope: "Messages", role: "assistant" }, partsOf("Messages"));
    return collector.texts;
  },

  requestMessages: (body) =>
    objectsIn(body["messages"]).map((message) => {
      const { scope, role } = placeOf(message);
      return { role, content: flatText(message["content"], partsOf(scope)) };
    }),

  replaceMessages(body, messages) {
    body["messages"] = messages.map(({ role, content }) => ({ role, content }));
  },

  answerTexts(body) {
    const collector = new TextCollector();
    for (const choice of objectsIn(body["choices"])) {
      const message = objectOf(choice["message"]);
      if (message !== undefined) addMessage(collector, message, choice);
    }
    return collector.texts;
  },

  answerChoices(body) {
    const collector = new TextCollector();
    for (const choice of objectsIn(body["choices"])) {
      const message = objectOf(choice["message"]) ?? {};
      const key = stringOf(message["content"]) === undefined && stringOf(message["refusal"]) ? "refusal" : "content";
      const text = stringOf(message[key]) ?? "";
      collector.choice({ scope: "Messages", role: stringOf(message["role"]) ?? "assistant" }, text, (masked) => {
        message[key] = masked;
        dropPositions(message, choice);
      });
    }
    return collector.texts;
  },

  streamedTexts(event) {
    const texts: StreamedText[] = [];
    for (const choice of objectsIn(event["choices"])) addDelta(texts, choice);
    return texts;
  },
};

/** @param choice the choice that holds the message of an answer */
function addMessage(collector: TextCollector, message: JsonObject, choice?: JsonObject): void {
  const place = placeOf(message);
  const changed = (): void => dropPositions(message, choice);
  if (Array.isArray(message["content"])) collector.content(message, "content", place, partsOf(place.scope));
  else collector.member(message, "content", place, changed);
  collector.member(message, "refusal", place, changed);
  addReasoning(collector, message, place);
  // A masked transcript would leave the spoken words in the recording.
  const audio = objectOf(message["audio"]);
  if (audio !== undefined) collector.member(audio, "transcript", { ...place, isSigned: true });
  const input: TextPlace = { scope: "ToolInput", role: place.role };
  for (const call of objectsIn(message["tool_calls"])) {
    const called = objectOf(call["function"]);
    const custom = objectOf(call["custom"]);
    if (called !== undefined) collector.argumentsText(called, "arguments", input);
    if (custom !== undefined) collector.member(custom, "input", input);
  }
  const legacy = objectOf(message["function_call"]);
  if (legacy !== undefined) collector.argumentsText(legacy, "arguments", input);
}

/** The text of reasoning comes twice when it is signed, and the signed copy must not change. */
function addReasoning(collector: TextCollector, message: JsonObject, place: TextPlace): void {
  const isSigned = stringOf(message["reasoning_signature"]) !== undefined;
  for (const key of ["reasoning_content", "reasoning"]) collector.member(message, key, { ...place, isSigned });
  for (const block of objectsIn(message["thinking_blocks"]))
    collector.member(block, "thinking", { ...place, isSigned: (stringOf(block["signature"]) ?? "") !== "" });
}

/** Removes what holds positions in the old text or the text itself. */
function dropPositions(message: JsonObject, choice: JsonObject | undefined): void {
  if (message["annotations"] !== undefined) message["annotations"] = [];
  if (choice !== undefined && objectOf(choice["logprobs"]) !== undefined) choice["logprobs"] = null;
}

function addDelta(texts: StreamedText[], choice: JsonObject): void {
  const delta = objectOf(choice["delta"]);
  if (delta === undefined) return;
  const lane = `choice ${String(choice["index"] ?? 0)}`;
  for (const key of ["content", "refusal", "reasoning_content", "reasoning"]) {
    const text = stringOf(delta[key]);
    if (text !== undefined && text !== "") texts.push({ lane: `${lane} ${key}`, scope: "Messages", text });
  }
  // Mistral's servers write a list of parts, whose thoughts are lists too.
  for (const part of objectsIn(delta["content"]).flatMap((each) => [each, ...objectsIn(each["thinking"])])) {
    const text = stringOf(part["text"]) ?? "";
    if (text !== "") texts.push({ lane: `${lane} content`, scope: "Messages", text });
  }
  for (const block of objectsIn(delta["thinking_blocks"])) {
    const text = stringOf(block["thinking"]) ?? "";
    if (text !== "") texts.push({ lane: `${lane} thinking_blocks`, scope: "Messages", text, isRepeated: true });
  }
  const transcript = stringOf(objectOf(delta["audio"])?.["transcript"]);
  if (transcript !== undefined) texts.push({ lane: `${lane} transcript`, scope: "Messages", text: transcript });
  for (const call of [...objectsIn(delta["tool_calls"]), ...legacyCall(delta)]) {
    const text = stringOf(objectOf(call["function"])?.["arguments"]) ?? stringOf(objectOf(call["custom"])?.["input"]);
    if (text === undefined || text === "") continue;
    texts.push({ lane: `${lane} call ${String(call["index"] ?? 0)}`, scope: "ToolInput", text });
  }
}

function legacyCall(delta: JsonObject): JsonObject[] {
  const called = objectOf(delta["function_call"]);
  return called === undefined ? [] : [{ function: called, index: "legacy" }];
}

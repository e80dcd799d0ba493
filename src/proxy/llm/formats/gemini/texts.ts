/** The texts of native Gemini bodies (generateContent) that prompt guards look at. */
import { objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import {
  flatText,
  objectsIn,
  TextCollector,
  type FormatTexts,
  type PartTexts,
  type StreamedText,
  type TextPlace,
} from "../guarded-text.ts";

/** The API takes both spellings of a member (Protocol Buffers JSON mapping). */
function member(object: JsonObject, name: string): Json | undefined {
  return object[name] ?? object[snakeCase(name)];
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function isSigned(part: JsonObject): boolean {
  return (stringOf(member(part, "thoughtSignature")) ?? "") !== "";
}

function keyOf(part: JsonObject): string | undefined {
  return typeof part["text"] === "string" && part["thought"] !== true && !isSigned(part) ? "text" : undefined;
}

const PARTS: PartTexts = { keyOf, separator: " " };
const SYSTEM: TextPlace = { scope: "SystemPrompt", role: "system" };

export const geminiTexts: FormatTexts = {
  requestTexts(body) {
    const collector = new TextCollector();
    const system = objectOf(member(body, "systemInstruction"));
    if (system !== undefined) addParts(collector, system, SYSTEM, "\n");
    for (const content of objectsIn(body["contents"])) addContent(collector, content);
    return collector.texts;
  },

  requestMessages(body) {
    const system = objectOf(member(body, "systemInstruction"));
    const text = flatText(system?.["parts"], { keyOf, separator: "\n" });
    const messages = objectsIn(body["contents"]).map((content) => ({
      role: flatRole(content),
      content: flatText(content["parts"], PARTS),
    }));
    return text === "" ? messages : [{ role: "system", content: text }, ...messages];
  },

  replaceMessages(body, messages) {
    for (const key of ["systemInstruction", "system_instruction"]) delete body[key];
    const system = messages.filter(({ role }) => role === "system");
    if (system.length > 0)
      body["systemInstruction"] = { parts: [{ text: system.map(({ content }) => content).join("\n") }] };
    body["contents"] = messages
      .filter(({ role }) => role !== "system")
      .map(({ role, content }) => ({ role: role === "assistant" ? "model" : role, parts: [{ text: content }] }));
  },

  answerTexts(body) {
    const collector = new TextCollector();
    for (const { content } of objectsIn(body["candidates"])) addContent(collector, objectOf(content) ?? {});
    return collector.texts;
  },

  answerChoices(body) {
    const collector = new TextCollector();
    for (const candidate of objectsIn(body["candidates"])) {
      const content = objectOf(candidate["content"]);
      const place: TextPlace = { scope: "Messages", role: "assistant" };
      collector.choice(place, flatText(content?.["parts"], PARTS), (masked) => {
        const parts = objectsIn(content?.["parts"]).filter((part) => keyOf(part) === undefined);
        candidate["content"] = { role: "model", ...content, parts: [...parts, { text: masked }] };
      });
    }
    return collector.texts;
  },

  streamedTexts(event) {
    const texts: StreamedText[] = [];
    for (const [at, candidate] of objectsIn(event["candidates"]).entries()) {
      const lane = `candidate ${String(candidate["index"] ?? at)}`;
      const collector = new TextCollector();
      addContent(collector, objectOf(candidate["content"]) ?? {});
      for (const { scope, text, isSigned: signed } of collector.texts)
        texts.push({ lane: `${lane} ${scope} ${signed}`, scope, text });
    }
    return texts;
  },
};

function flatRole({ role }: JsonObject): string {
  const name = stringOf(role) ?? "user";
  return name === "model" ? "assistant" : name;
}

function addContent(collector: TextCollector, content: JsonObject): void {
  addParts(collector, content, { scope: "Messages", role: flatRole(content) }, " ");
}

function addParts(collector: TextCollector, content: JsonObject, place: TextPlace, separator: string): void {
  const parts = content["parts"];
  if (Array.isArray(parts))
    collector.parts(parts, place, { keyOf, separator, other: (part) => addPart(collector, part, place) });
}

function addPart(collector: TextCollector, part: JsonObject, place: TextPlace): void {
  const signed = isSigned(part);
  const input: TextPlace = { scope: "ToolInput", role: place.role, isSigned: signed };
  const output: TextPlace = { scope: "ToolOutput", role: place.role };
  collector.member(part, "text", { ...place, isSigned: signed });
  const call = objectOf(member(part, "functionCall"));
  if (call !== undefined) collector.memberValues(call, "args", input);
  const response = objectOf(member(part, "functionResponse"));
  if (response !== undefined) collector.memberValues(response, "response", output);
  const code = objectOf(member(part, "executableCode"));
  if (code !== undefined) collector.member(code, "code", input);
  const result = objectOf(member(part, "codeExecutionResult"));
  if (result !== undefined) collector.member(result, "output", output);
}

/** Reads an answer of the Gemini API. */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Answer, Choice } from "../../conversation/answer.ts";
import type { CallPart, Citation, Part, Signature, Source } from "../../conversation/conversation.ts";
import { readAnswerObject, readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext } from "../chat-format.ts";
import { readStop } from "./stop.ts";
import { learnFacts } from "./usage.ts";

export function readAnswer(body: JsonObject, context: ReadContext): Answer {
  requireAnswer(body);
  const facts: Facts = {};
  learnFacts(body, facts);
  const id = stringOf(body["responseId"]) ?? "";
  const callIds = new AnswerCallIds(id);
  const choices = readAnswerObjects(body["candidates"], "candidates").map((candidate, at) =>
    readChoice(candidate, at, { context, callIds }),
  );
  if (choices.length === 0)
    choices.push({ index: 0, parts: [], stop: { reason: isBlocked(body) ? "refusal" : "end" } });
  return { id, model: facts.model ?? context.model, choices, facts };
}

/** @throws ProxyError llm_response_invalid for a body or an event that has nothing of an answer */
export function requireAnswer(body: JsonObject): void {
  if (Array.isArray(body["candidates"]) || isBlocked(body) || objectOf(body["usageMetadata"]) !== undefined) return;
  throw new ProxyError("llm_response_invalid", { detail: "a Gemini answer without a list of candidates" });
}

/** Whether the prompt was refused, so that there is no candidate. */
export function isBlocked(body: JsonObject): boolean {
  return stringOf(objectOf(body["promptFeedback"])?.["blockReason"]) !== undefined;
}

/** Gives calls without an identifier one that is unique in the answer. */
export class AnswerCallIds {
  readonly #prefix: string;
  #count = 0;

  /** @param answer identifier of the answer */
  constructor(answer: string) {
    this.#prefix = answer === "" ? "call" : `call_${answer}`;
  }

  read(call: JsonObject): string {
    const at = this.#count++;
    return stringOf(call["id"]) || `${this.#prefix}_${at}`;
  }
}

interface PartContext {
  readonly context: ReadContext;
  readonly callIds: AnswerCallIds;
}

function readChoice(candidate: JsonObject, at: number, context: PartContext): Choice {
  const parts: Part[] = [];
  for (const part of readAnswerParts(candidate)) addPart(readPart(part, context), parts);
  cite(candidate, parts);
  const hasCall = parts.some(({ kind }) => kind === "call");
  return {
    index: countOf(candidate["index"]) ?? at,
    parts,
    stop: { reason: readStop(candidate["finishReason"], hasCall) },
  };
}

/** Returns the parts of a candidate, or of an event's piece of it. */
export function readAnswerParts(candidate: JsonObject): JsonObject[] {
  return readAnswerObjects(readAnswerObject(candidate["content"], "content")?.["parts"], "parts");
}

/** Joins neighbouring texts without a signature, as a stream does. */
function addPart(part: Part | undefined, parts: Part[]): void {
  const last = parts.at(-1);
  if (part?.kind === "text" && last?.kind === "text" && last.signature === undefined)
    parts[parts.length - 1] = { ...part, text: last.text + part.text };
  else if (part?.kind === "reasoning" && last?.kind === "reasoning" && last.signature === undefined)
    parts[parts.length - 1] = { ...part, text: last.text + part.text };
  else if (part !== undefined) parts.push(part);
}

/** @returns undefined for a part without content */
export function readPart(part: JsonObject, { context, callIds }: PartContext): Part | undefined {
  const value = stringOf(part["thoughtSignature"]) ?? "";
  const signature: { signature?: Signature } = value === "" ? {} : { signature: { vendor: "google", value } };
  const text = part["text"] === undefined ? undefined : readAnswerText(part["text"], "text");
  if (part["thought"] === true) return { kind: "reasoning", text: text ?? "", ...signature };
  if (text !== undefined) return text === "" && value === "" ? undefined : { kind: "text", text, ...signature };
  const call = readAnswerObject(part["functionCall"], "functionCall");
  if (call !== undefined) return { ...readCall(call, { context, callIds }), ...signature };
  return readMedia(part) ?? readOther(part);
}

function readCall(call: JsonObject, { context, callIds }: PartContext): CallPart {
  const name = readAnswerText(call["name"], "name");
  return {
    kind: "call",
    id: callIds.read(call),
    name: context.toolNames?.get(name) ?? name,
    arguments: JSON.stringify(objectOf(call["args"]) ?? {}),
  };
}

function readMedia(part: JsonObject): Part | undefined {
  const inline = objectOf(part["inlineData"]);
  const data = stringOf(inline?.["data"]);
  if (inline === undefined || data === undefined) return undefined;
  const mediaType = stringOf(inline["mimeType"]) ?? "application/octet-stream";
  const source: Source = { kind: "data", mediaType, data };
  if (mediaType.startsWith("image/")) return { kind: "image", source };
  return { kind: mediaType.startsWith("audio/") ? "audio" : "file", source };
}

/** Code that Google runs, and what is new in the API. */
function readOther(part: JsonObject): Part | undefined {
  const [name] = Object.keys(part).filter((each) => each !== "thoughtSignature");
  return name === undefined ? undefined : { kind: "vendor", vendor: "google", name, value: part };
}

/** Sources are told for the whole candidate; they are put on its last text. */
function cite(candidate: JsonObject, parts: Part[]): void {
  const citations = readCitations(candidate);
  const at = parts.findLastIndex(({ kind }) => kind === "text");
  const text = parts[at];
  if (citations.length > 0 && text?.kind === "text") parts[at] = { ...text, citations };
}

/** Whether it is worth looking; most events of a stream have neither. */
export function hasCitations(candidate: JsonObject): boolean {
  return candidate["citationMetadata"] !== undefined || candidate["groundingMetadata"] !== undefined;
}

export function readCitations(candidate: JsonObject): Citation[] {
  const found = ["citationMetadata", "groundingMetadata"].flatMap((name) => {
    const value = objectOf(candidate[name]);
    return value === undefined || Object.keys(value).length === 0 ? [] : [{ [name]: value }];
  });
  return found.map((value) => ({ vendor: "google", value }));
}

/** Prints an answer as one of the Gemini API. */
import type { Answer, Choice } from "../../conversation/answer.ts";
import { argumentsObject } from "../../conversation/arguments.ts";
import type { Part, Signature, Source } from "../../conversation/conversation.ts";
import { printSignature } from "../../conversation/signature.ts";
import { objectOf, type JsonObject } from "../../shared/json.ts";
import type { AnswerContext } from "../chat-format.ts";
import { memberOf } from "./member.ts";
import { printStop } from "./stop.ts";
import { printUsage } from "./usage.ts";

export function printAnswer({ id, model, choices, facts }: Answer, { request }: AnswerContext): JsonObject {
  const showsThoughts = wantsThoughts(request);
  return {
    candidates: choices.map((choice) => printChoice(choice, showsThoughts)),
    ...(facts.usage === undefined ? {} : { usageMetadata: printUsage(facts.usage) }),
    modelVersion: model,
    responseId: id,
  };
}

/** Whether the client asked to see the thoughts. Without that the API shows none, and clients take them for text. */
export function wantsThoughts(request: JsonObject): boolean {
  const config = objectOf(memberOf(request, "generationConfig"));
  const thinking = config === undefined ? undefined : objectOf(memberOf(config, "thinkingConfig"));
  return thinking !== undefined && memberOf(thinking, "includeThoughts") === true;
}

function printChoice({ index, parts, stop }: Choice, showsThoughts: boolean): JsonObject {
  const printed = parts.flatMap((part) => printPart(part, showsThoughts));
  return {
    content: { parts: printed.length === 0 ? [{ text: "" }] : printed, role: "model" },
    finishReason: printStop(stop.reason),
    index,
  };
}

function printPart(part: Part, showsThoughts: boolean): JsonObject[] {
  switch (part.kind) {
    case "text":
      return [{ text: part.text, ...signed(part.signature) }];
    case "refusal":
      return [{ text: part.text }];
    case "reasoning":
      return printThought(part.text, part.signature, showsThoughts);
    case "redacted":
      return [printRedacted(part.data)];
    case "call":
      return [printCall(part)];
    case "image":
    case "audio":
    case "file":
      return printMedia(part.source);
    case "vendor":
      return part.vendor === "google" ? [part.value] : [];
    case "result":
      return [];
  }
}

/** A signed thought is printed in any case, since a later request may have to bring its signature back. */
function printThought(text: string, signature: Signature | undefined, showsThoughts: boolean): JsonObject[] {
  if (!showsThoughts && signature === undefined) return [];
  return [{ text, thought: true, ...signed(signature) }];
}

export function printRedacted(data: Signature): JsonObject {
  return { thought: true, ...signed(data) };
}

/** @param text arguments; when they are not a JSON object, the client gets an empty one */
export function printCall(call: {
  id: string;
  name: string;
  arguments: string;
  isFreeText?: boolean;
  signature?: Signature;
}): JsonObject {
  const { id, name, arguments: text, isFreeText, signature } = call;
  const args = isFreeText === true ? { input: text } : (argumentsObject(text) ?? {});
  return { functionCall: { id, name, args }, ...signed(signature) };
}

/** A signature of another vendor is marked as such, so that it never reaches Google. */
export function signed(signature: Signature | undefined): JsonObject {
  if (signature === undefined) return {};
  return { thoughtSignature: signature.vendor === "google" ? signature.value : printSignature(signature) };
}

function printMedia(source: Source): JsonObject[] {
  if (source.kind === "data") return [{ inlineData: { mimeType: source.mediaType, data: source.data } }];
  if (source.kind === "text") return [{ text: source.text }];
  if (source.kind === "url") return [{ fileData: { fileUri: source.url } }];
  return [];
}

/** Prints the turns of a conversation as the contents of a Gemini request. `print-request.ts` uses it. */
import { argumentsObject } from "../../conversation/arguments.ts";
import {
  toolNames,
  type CallPart,
  type Part,
  type ResultPart,
  type Signature,
  type Source,
  type Turn,
} from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import { NO_SIGNATURE } from "./generation.ts";
import { mediaTypeOf } from "./media-types.ts";

/** The API refuses a turn of the user without a text. */
const BLANK: JsonObject = { text: " " };

export interface TurnsOptions {
  readonly losses: Losses;
  /** The model refuses calls without a signature. */
  readonly needsSignatures: boolean;
  /** Results may carry images themselves. */
  readonly hasMediaResults: boolean;
  /** Returns the name of a tool as the provider knows it. */
  readonly toolName: (name: string) => string;
}

export function printTurns(turns: readonly Turn[], options: TurnsOptions): JsonObject[] {
  const printer = new TurnPrinter(turns, options);
  const contents: JsonObject[] = [];
  for (const [at, { role, parts }] of turns.entries()) {
    const printed = role === "user" ? printer.user(parts, turns[at - 1]) : printer.model(parts);
    if (printed.length === 0) continue;
    // A conversation begins with the user.
    if (contents.length === 0 && role === "assistant") contents.push({ role: "user", parts: [BLANK] });
    contents.push({ role: role === "user" ? "user" : "model", parts: printed });
  }
  return contents.length === 0 ? [{ role: "user", parts: [BLANK] }] : contents;
}

class TurnPrinter {
  readonly #names: ReadonlyMap<string, string>;
  readonly #options: TurnsOptions;

  constructor(turns: readonly Turn[], options: TurnsOptions) {
    this.#names = toolNames(turns);
    this.#options = options;
  }

  /** Results come first and in the order of the calls, because the API pairs them by position. */
  user(parts: readonly Part[], before: Turn | undefined): JsonObject[] {
    const results = inOrderOfCalls(
      parts.filter((part) => part.kind === "result"),
      before,
    );
    const printed = results.flatMap((part) => this.#result(part));
    const others = parts.flatMap((part) => (part.kind === "result" ? [] : this.#content(part)));
    if (results.length === 0 && !others.some(({ text }) => text !== undefined)) others.push(BLANK);
    return [...printed, ...others];
  }

  /** A signature that stands alone, in an empty thought, belongs to the next call or text. */
  model(parts: readonly Part[]): JsonObject[] {
    const printed: JsonObject[] = [];
    let carried: string | undefined;
    let hasCall = false;
    for (const part of parts) {
      if (part.kind === "reasoning" && part.text === "") {
        carried = ownSignature(part.signature) ?? carried;
        continue;
      }
      const isCall = part.kind === "call";
      let signature: string | undefined;
      if (isCall || part.kind === "text") {
        signature = ownSignature(part.signature) ?? carried;
        carried = undefined;
      }
      // Of parallel calls only the first one is signed.
      if (isCall && !hasCall && this.#options.needsSignatures) signature ??= NO_SIGNATURE;
      hasCall ||= isCall;
      for (const each of this.#content(part))
        printed.push(signature === undefined ? each : { ...each, thoughtSignature: signature });
    }
    return printed;
  }

  #content(part: Part): JsonObject[] {
    if (part.cache !== undefined) this.#options.losses.add("cache_control");
    switch (part.kind) {
      case "text":
        return part.text === "" && part.signature === undefined ? [] : [{ text: part.text }];
      case "refusal":
        return [{ text: part.text }];
      case "image":
      case "file":
      case "audio":
        return [printSource(part.source, part.path ?? part.kind)];
      case "call":
        return [this.#call(part)];
      case "reasoning":
        return this.#thought(part.text, ownSignature(part.signature), part.path);
      case "vendor":
        if (part.vendor === "google") return [part.value];
    }
    this.#options.losses.add(part.path ?? part.kind);
    return [];
  }

  /** Thoughts of other vendors would be taken for those of the model. */
  #thought(text: string, thoughtSignature: string | undefined, path: string | undefined): JsonObject[] {
    if (thoughtSignature !== undefined) return [{ text, thought: true, thoughtSignature }];
    this.#options.losses.add(path ?? "reasoning");
    return [];
  }

  #call({ id, name, arguments: text, isFreeText, path }: CallPart): JsonObject {
    const args = isFreeText === true ? { input: text } : argumentsObject(text);
    if (args === undefined) this.#options.losses.add(path ?? `arguments of ${id}`);
    return { functionCall: { name: this.#options.toolName(name), args: args ?? {} } };
  }

  #result({ id, name: given, parts, isError, path }: ResultPart): JsonObject[] {
    const name = this.#names.get(id) ?? given;
    if (name === undefined) throw invalidRequest(`${path ?? "a result"} must name the call of a message before it`);
    const texts = parts.filter((part) => part.kind === "text").map(({ text }) => text);
    const media = parts.flatMap((part) => (part.kind === "text" ? [] : this.#content(part)));
    const response: JsonObject = { [isError === true ? "error" : "content"]: texts.join("\n") };
    const functionResponse: JsonObject = { name: this.#options.toolName(name), response };
    if (media.length === 0) return [{ functionResponse }];
    if (this.#options.hasMediaResults) return [{ functionResponse: { ...functionResponse, parts: media } }];
    return [{ functionResponse }, ...media];
  }
}

/** Results without a call in the turn before come last. */
function inOrderOfCalls(results: readonly ResultPart[], before: Turn | undefined): readonly ResultPart[] {
  if (results.length < 2) return results;
  const order = new Map<string, number>();
  for (const part of before?.parts ?? [])
    if (part.kind === "call" && !order.has(part.id)) order.set(part.id, order.size);
  const rank = ({ id }: ResultPart): number => order.get(id) ?? order.size;
  return results.toSorted((a, b) => rank(a) - rank(b));
}

function ownSignature(signature: Signature | undefined): string | undefined {
  return signature?.vendor === "google" ? signature.value : undefined;
}

/** Files of the API itself, the only ones on the web that it reads. */
const OWN_FILES = "https://generativelanguage.googleapis.com/";

function printSource(source: Source, path: string): JsonObject {
  switch (source.kind) {
    case "data":
      return { inlineData: { mimeType: source.mediaType, data: source.data } };
    case "text":
      return { text: source.text };
    case "id":
      if (source.vendor !== "google") throw invalidRequest(`${path} names a file that this provider does not have`);
      return printFile(source.id, source.mediaType, path);
    case "url":
      if (!source.url.startsWith("gs://") && !source.url.startsWith(OWN_FILES))
        throw invalidRequest(`${path} must be a data URL or begin with gs:// for this provider`);
      return printFile(source.url, source.mediaType, path);
  }
}

function printFile(fileUri: string, given: string | undefined, path: string): JsonObject {
  const mimeType = given ?? mediaTypeOf(fileUri);
  if (mimeType !== undefined) return { fileData: { mimeType, fileUri } };
  if (!fileUri.startsWith("gs://")) return { fileData: { fileUri } };
  throw invalidRequest(`${path} has an unknown type of media; set format to one such as image/png`);
}

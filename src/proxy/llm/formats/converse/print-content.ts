/** Prints turns of a conversation as messages of Converse. `print-request.ts` uses it. */
import { argumentsObject } from "../../conversation/arguments.ts";
import type { CallPart, Part, ResultPart, Turn, VendorPart } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { CacheMarks } from "./cache-marks.ts";
import { DocumentPrinter, printImage } from "./documents.ts";
import type { AllowedNames } from "../shared/allowed-names.ts";

/** Stands for the result of a tool that returned nothing, because blank texts are refused. */
const NO_OUTPUT = "(no output)";

export interface ContentContext {
  readonly tools: AllowedNames;
  /** Identifiers of calls. */
  readonly calls: AllowedNames;
  readonly marks: CacheMarks;
  readonly losses: Losses;
}

/** Prints the turns that have content. Neighbours of one role are joined, because roles have to alternate. */
export function printMessages(turns: readonly Turn[], context: ContentContext): JsonObject[] {
  const printer = new ContentPrinter(context);
  const messages: { readonly role: Turn["role"]; readonly content: JsonObject[] }[] = [];
  for (const { role, parts } of turns) {
    const content = printer.print(parts);
    if (content.length === 0) continue;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  return messages.map(({ role, content }) => ({ role, content: withText(content) }));
}

/** Adds a text to a message that has a document and no text, because a document needs one. */
function withText(content: JsonObject[]): JsonObject[] {
  const document = content.find((block) => block["document"] !== undefined)?.["document"];
  if (document === undefined || content.some((block) => block["text"] !== undefined)) return content;
  return [{ text: stringOf(objectOf(document)?.["name"]) ?? "document" }, ...content];
}

class ContentPrinter {
  readonly #context: ContentContext;
  readonly #documents = new DocumentPrinter();

  constructor(context: ContentContext) {
    this.#context = context;
  }

  print(parts: readonly Part[]): JsonObject[] {
    const content: JsonObject[] = [];
    for (const part of parts) {
      const block = this.#block(part);
      if (block !== undefined) content.push(block);
      const cache = part.cache ?? (part.kind === "result" ? part.parts.find((each) => each.cache)?.cache : undefined);
      if (cache !== undefined) this.#context.marks.addTo(content, cache, part.path);
    }
    return content;
  }

  /** @returns undefined for a part that the format cannot express; it is named as a loss */
  #block(part: Part): JsonObject | undefined {
    switch (part.kind) {
      case "text":
      case "refusal":
        // Blank texts are refused.
        return part.text.trim() === "" ? undefined : { text: part.text };
      case "image":
        return printImage(part);
      case "file":
        return this.#documents.print(part);
      case "call":
        return this.#call(part);
      case "result":
        return this.#result(part);
      case "reasoning":
        if (part.signature?.vendor !== "anthropic") return this.#lose(part);
        return { reasoningContent: { reasoningText: { text: part.text, signature: part.signature.value } } };
      case "redacted":
        if (part.data.vendor !== "anthropic") return this.#lose(part);
        return { reasoningContent: { redactedContent: part.data.value } };
      case "vendor":
        return printSearchResult(part) ?? this.#lose(part);
      case "audio":
        return this.#lose(part);
    }
  }

  #lose(part: Part): undefined {
    this.#context.losses.add(part.path ?? part.kind);
  }

  #call({ id, name, arguments: text, isFreeText, path }: CallPart): JsonObject {
    const { tools, calls, losses } = this.#context;
    const input = isFreeText === true ? { input: text } : argumentsObject(text);
    if (input === undefined) losses.add(path ?? name);
    return { toolUse: { toolUseId: calls.allowed(id), name: tools.allowed(name), input: input ?? {} } };
  }

  #result({ id, parts, isError }: ResultPart): JsonObject {
    const content = parts.map((part) => this.#block(part)).filter((block) => block !== undefined);
    return {
      toolResult: {
        toolUseId: this.#context.calls.allowed(id),
        content: content.length === 0 ? [{ text: NO_OUTPUT }] : content,
        ...(isError === true ? { status: "error" } : {}),
      },
    };
  }
}

/** Prints a search result of the Messages API. @returns undefined for any other part */
function printSearchResult({ vendor, name, value }: VendorPart): JsonObject | undefined {
  if (vendor !== "anthropic" || name !== "search_result") return undefined;
  const source = stringOf(value["source"]);
  const title = stringOf(value["title"]);
  if (source === undefined || title === undefined) return undefined;
  const enabled = objectOf(value["citations"])?.["enabled"];
  return {
    searchResult: {
      source,
      title,
      content: listOf(value["content"]).flatMap(printText),
      ...(typeof enabled === "boolean" ? { citations: { enabled } } : {}),
    },
  };
}

function printText(item: Json): JsonObject[] {
  const text = stringOf(objectOf(item)?.["text"]);
  return text === undefined ? [] : [{ text }];
}

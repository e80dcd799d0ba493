/**
 * Reads the events of a streamed Converse answer. Blocks of text and reasoning have no start event, so their first delta
 * opens them.
 */
import type { Signature } from "../../conversation/conversation.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { readAnswerObject, readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import { EXCEPTION } from "../../stream/event-stream.ts";
import type { ReadContext, StreamReader } from "../chat-format.ts";
import { readCitation } from "./citations.ts";
import { readException } from "./errors.ts";
import { makeId } from "./id.ts";
import { readStop } from "./read-answer.ts";
import { learnFacts } from "./usage.ts";

/** More blocks than any answer has; further ones are ignored. */
const MAX_BLOCKS = 4096;

export function readStream(context: ReadContext): StreamReader {
  return new ConverseReader(context);
}

interface OpenPart {
  readonly part: number;
  readonly kind: OpenedPart["kind"];
}

class ConverseReader implements StreamReader {
  readonly #context: ReadContext;
  /** Open parts by the index of their block. */
  readonly #open = new Map<number, OpenPart>();
  #parts = 0;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  read(event: JsonObject, type: string): readonly AnswerEvent[] {
    switch (type) {
      case "messageStart":
        return [{ kind: "start", id: makeId(), model: this.#context.model }];
      case "contentBlockStart":
        return this.#blockStart(indexOf(event), objectOf(event["start"]) ?? {});
      case "contentBlockDelta":
        return this.#blockDelta(indexOf(event), objectOf(event["delta"]) ?? {});
      case "contentBlockStop":
        return this.#close(indexOf(event));
      case "messageStop": {
        const closed = [...this.#open.keys()].flatMap((index) => this.#close(index));
        return [...closed, { kind: "stop", choice: 0, stop: readStop(event["stopReason"]) }];
      }
      case "metadata":
        return readUsage(event);
      default:
        if (!type.startsWith(EXCEPTION)) return [];
        return [{ kind: "error", error: readException(type.slice(EXCEPTION.length), event) }];
    }
  }

  end(): readonly AnswerEvent[] {
    return [];
  }

  #blockStart(index: number, start: JsonObject): AnswerEvent[] {
    const call = objectOf(start["toolUse"]);
    if (call === undefined) return [];
    const name = stringOf(call["name"]) ?? "";
    return this.#openPart(index, {
      kind: "call",
      id: stringOf(call["toolUseId"]) ?? "",
      name: this.#context.toolNames?.get(name) ?? name,
      ...(call["type"] === "server_tool_use" ? { isServerSide: true } : {}),
    }).events;
  }

  #blockDelta(index: number, delta: JsonObject): AnswerEvent[] {
    if (delta["text"] !== undefined) return this.#text(index, "text", readAnswerText(delta["text"], "text"));
    const call = readAnswerObject(delta["toolUse"], "toolUse");
    if (call !== undefined) return this.#arguments(index, readAnswerText(call["input"], "input"));
    const reasoning = readAnswerObject(delta["reasoningContent"], "reasoningContent");
    if (reasoning !== undefined) return this.#reasoning(index, reasoning);
    const citation = objectOf(delta["citation"]);
    if (citation === undefined) return [];
    const { events, part } = this.#require(index, "text");
    return [...events, { kind: "citation", choice: 0, part, citation: readCitation(citation) }];
  }

  #text(index: number, kind: "text" | "reasoning", text: string): AnswerEvent[] {
    const { events, part } = this.#require(index, kind);
    return [...events, { kind: "delta", choice: 0, part, text }];
  }

  #arguments(index: number, text: string): AnswerEvent[] {
    const open = this.#open.get(index);
    // A call without a start has neither a name nor an identifier, so nobody could answer it.
    return open?.kind === "call" ? [{ kind: "delta", choice: 0, part: open.part, text }] : [];
  }

  #reasoning(index: number, content: JsonObject): AnswerEvent[] {
    if (content["text"] !== undefined) return this.#text(index, "reasoning", readAnswerText(content["text"], "text"));
    const signature = stringOf(content["signature"]);
    if (signature !== undefined) {
      const { events, part } = this.#require(index, "reasoning");
      return [...events, { kind: "signature", choice: 0, part, signature: signed(signature) }];
    }
    const data = stringOf(content["redactedContent"]);
    return data === undefined ? [] : this.#openPart(index, { kind: "redacted", data: signed(data) }).events;
  }

  /** Returns the open part of a block, after opening it when the block has none of this kind. */
  #require(index: number, kind: "text" | "reasoning"): { readonly events: AnswerEvent[]; readonly part: number } {
    const open = this.#open.get(index);
    return open?.kind === kind ? { events: [], part: open.part } : this.#openPart(index, { kind });
  }

  #openPart(index: number, opened: OpenedPart): { readonly events: AnswerEvent[]; readonly part: number } {
    const events: AnswerEvent[] = this.#close(index);
    const part = this.#parts++;
    if (this.#open.size < MAX_BLOCKS) this.#open.set(index, { part, kind: opened.kind });
    events.push({ kind: "open", choice: 0, part, opened });
    return { events, part };
  }

  #close(index: number): AnswerEvent[] {
    const open = this.#open.get(index);
    if (open === undefined) return [];
    this.#open.delete(index);
    return [{ kind: "close", choice: 0, part: open.part }];
  }
}

function readUsage(event: JsonObject): AnswerEvent[] {
  const facts: Facts = {};
  learnFacts(event, facts);
  const { usage, serviceTier } = facts;
  if (usage === undefined) return [];
  return [{ kind: "usage", usage, ...(serviceTier === undefined ? {} : { serviceTier }) }];
}

function signed(value: string): Signature {
  return { vendor: "anthropic", value };
}

function indexOf(event: JsonObject): number {
  return countOf(event["contentBlockIndex"]) ?? -1;
}

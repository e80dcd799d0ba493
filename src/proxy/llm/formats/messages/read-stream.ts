/** Reads the events of a streamed answer of the Messages API. */
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ReadContext, StreamReader } from "../chat-format.ts";
import { readErrorObject } from "../shared/read-error.ts";
import { originalName } from "../shared/tool-names.ts";
import { readStopReason } from "./read-answer.ts";
import { learnFromEvent } from "./usage.ts";

/** More blocks than any answer has; further ones are ignored. */
const MAX_BLOCKS = 4096;

export function readStream(context: ReadContext): StreamReader {
  return new MessagesReader(context);
}

class MessagesReader implements StreamReader {
  readonly #context: ReadContext;
  readonly #facts: Facts = {};
  /** Numbers of the open parts by the index of their block. */
  readonly #open = new Map<number, number>();
  #parts = 0;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  read(event: JsonObject): readonly AnswerEvent[] {
    switch (event["type"]) {
      case "message_start":
        return this.#start(event);
      case "content_block_start":
        return this.#blockStart(indexOf(event), objectOf(event["content_block"]) ?? {});
      case "content_block_delta":
        return this.#blockDelta(indexOf(event), objectOf(event["delta"]) ?? {});
      case "content_block_stop":
        return this.#blockStop(indexOf(event));
      case "message_delta":
        return this.#messageDelta(event);
      case "error":
        return [{ kind: "error", error: readErrorObject(event) }];
      default:
        return [];
    }
  }

  end(): readonly AnswerEvent[] {
    return [];
  }

  #start(event: JsonObject): AnswerEvent[] {
    const message = objectOf(event["message"]) ?? {};
    const model = stringOf(message["model"]) ?? this.#context.model;
    return [{ kind: "start", id: stringOf(message["id"]) ?? "", model }, ...this.#usage(event)];
  }

  #usage(event: JsonObject): AnswerEvent[] {
    learnFromEvent(event, this.#facts);
    const { usage, serviceTier } = this.#facts;
    if (usage === undefined) return [];
    return [{ kind: "usage", usage, ...(serviceTier === undefined ? {} : { serviceTier }) }];
  }

  #messageDelta(event: JsonObject): AnswerEvent[] {
    const delta = objectOf(event["delta"]) ?? {};
    const usage = this.#usage(event);
    if (typeof delta["stop_reason"] !== "string") return usage;
    return [...this.#closeAll(), ...usage, { kind: "stop", choice: 0, stop: readStopReason(delta) }];
  }

  #blockStart(index: number, block: JsonObject): AnswerEvent[] {
    const opened = openedBy(block, this.#context.toolNames);
    const part = this.#openPart(index);
    const events: AnswerEvent[] = [{ kind: "open", choice: 0, part, opened }];
    const text = stringOf(block["text"]) ?? stringOf(block["thinking"]) ?? "";
    if (text !== "" && (opened.kind === "text" || opened.kind === "reasoning"))
      events.push({ kind: "delta", choice: 0, part, text });
    return events;
  }

  #openPart(index: number): number {
    const part = this.#parts++;
    if (this.#open.size < MAX_BLOCKS) this.#open.set(index, part);
    return part;
  }

  #blockDelta(index: number, delta: JsonObject): AnswerEvent[] {
    const type = delta["type"];
    const events: AnswerEvent[] = [];
    let part = this.#open.get(index);
    if (part === undefined) {
      // Some servers leave out the start of a block of text.
      if (type !== "text_delta" && type !== "thinking_delta") return [];
      part = this.#openPart(index);
      events.push({ kind: "open", choice: 0, part, opened: { kind: type === "text_delta" ? "text" : "reasoning" } });
    }
    const read = deltaOf(delta, part);
    if (read !== undefined) events.push(read);
    return events;
  }

  #blockStop(index: number): AnswerEvent[] {
    const part = this.#open.get(index);
    if (part === undefined) return [];
    this.#open.delete(index);
    return [{ kind: "close", choice: 0, part }];
  }

  #closeAll(): AnswerEvent[] {
    const events = [...this.#open.values()].map((part) => ({ kind: "close", choice: 0, part }) as const);
    this.#open.clear();
    return events;
  }
}

function openedBy(block: JsonObject, toolNames: ReadContext["toolNames"]): OpenedPart {
  switch (block["type"]) {
    case "text":
      return { kind: "text" };
    case "thinking":
      return { kind: "reasoning" };
    case "redacted_thinking":
      return { kind: "redacted", data: { vendor: "anthropic", value: stringOf(block["data"]) ?? "" } };
    case "tool_use":
    case "server_tool_use": {
      const isServerSide = block["type"] === "server_tool_use";
      const made = { id: stringOf(block["id"]) ?? "", name: originalName(block, toolNames) };
      return { kind: "call", ...made, ...(isServerSide ? { isServerSide } : {}) };
    }
    default:
      return { kind: "vendor", vendor: "anthropic", name: stringOf(block["type"]) ?? "", value: block };
  }
}

function deltaOf(delta: JsonObject, part: number): AnswerEvent | undefined {
  const place = { choice: 0, part };
  switch (delta["type"]) {
    case "text_delta":
      return { kind: "delta", ...place, text: readAnswerText(delta["text"], "text") };
    case "thinking_delta":
      return { kind: "delta", ...place, text: readAnswerText(delta["thinking"], "thinking") };
    case "input_json_delta":
      return { kind: "delta", ...place, text: readAnswerText(delta["partial_json"], "partial_json") };
    case "signature_delta":
      return {
        kind: "signature",
        ...place,
        signature: { vendor: "anthropic", value: stringOf(delta["signature"]) ?? "" },
      };
    case "citations_delta": {
      const value = objectOf(delta["citation"]);
      return value === undefined ? undefined : { kind: "citation", ...place, citation: { vendor: "anthropic", value } };
    }
    default:
      return undefined;
  }
}

function indexOf(event: JsonObject): number {
  return countOf(event["index"]) ?? -1;
}

/**
 * Reads the events of a streamed response. Contents of messages and items are parts; an event names its part by the
 * index of the item and of the content. A whole item of reasoning is one part, whose summaries are paragraphs.
 *
 * Servers that speak this format leave events out: a part is also opened by its first text, and what the closing event
 * of a part repeats is used when no delta came before.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { ReadContext, StreamReader } from "../chat-format.ts";
import { readErrorObject } from "../shared/read-error.ts";
import { readCallHead, readCitation, readSeal, readStop } from "./read-answer.ts";
import { readUsage } from "./usage.ts";

export function readStream(context: ReadContext): StreamReader {
  return new ResponsesReader(context);
}

/** More parts than any model leaves open at a time. */
const MAX_OPEN = 1024;

interface OpenPart {
  readonly part: number;
  readonly kind: OpenedPart["kind"];
  hasDelta: boolean;
}

type Kind = "text" | "refusal" | "reasoning";

class ResponsesReader implements StreamReader {
  readonly #context: ReadContext;
  /** Open parts by the index of the item, for contents of messages also by that of the content. */
  readonly #open = new Map<string, OpenPart>();
  #parts = 0;
  #hasStarted = false;
  #hasCalls = false;
  #hasRefused = false;
  #events: AnswerEvent[] = [];

  constructor(context: ReadContext) {
    this.#context = context;
  }

  read(event: JsonObject, name: string): readonly AnswerEvent[] {
    this.#events = [];
    this.#read(event, stringOf(event["type"]) ?? name);
    return this.#events;
  }

  end(): readonly AnswerEvent[] {
    return [];
  }

  #read(event: JsonObject, type: string): void {
    switch (type) {
      case "response.created":
        return this.#start(objectOf(event["response"]) ?? {});
      case "response.output_item.added":
        return this.#itemAdded(event, objectOf(event["item"]) ?? {});
      case "response.output_item.done":
        return this.#itemDone(event, objectOf(event["item"]) ?? {});
      case "response.content_part.added":
        return this.#contentAdded(event);
      case "response.output_text.delta":
        return this.#text(contentKey(event), "text", event["delta"]);
      case "response.refusal.delta":
        return this.#text(contentKey(event), "refusal", event["delta"]);
      case "response.output_text.done":
        return this.#whole(contentKey(event), "text", event["text"]);
      case "response.refusal.done":
        return this.#whole(contentKey(event), "refusal", event["refusal"]);
      case "response.content_part.done":
        return this.#close(contentKey(event));
      case "response.reasoning_summary_part.added":
        return this.#paragraph(itemKey(event));
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#text(itemKey(event), "reasoning", event["delta"]);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#delta(itemKey(event), event["delta"]);
      case "response.output_text.annotation.added":
        return this.#cite(event);
      case "response.completed":
      case "response.incomplete":
        return this.#finish(objectOf(event["response"]) ?? {});
      case "response.failed":
      case "error":
        return this.#fail(event);
      default:
    }
  }

  #start(response: JsonObject): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    const model = stringOf(response["model"]) ?? this.#context.model;
    this.#events.push({ kind: "start", id: stringOf(response["id"]) ?? "", model });
  }

  #itemAdded(event: JsonObject, item: JsonObject): void {
    const type = item["type"];
    if (type === "function_call" || type === "custom_tool_call") {
      this.#hasCalls = true;
      const isFreeText = type === "custom_tool_call";
      const head = readCallHead(item, this.#context.toolNames);
      this.#openPart(itemKey(event), { kind: "call", ...head, ...(isFreeText ? { isFreeText } : {}) });
    } else if (type === "reasoning") this.#openPart(itemKey(event), { kind: "reasoning" });
  }

  #itemDone(event: JsonObject, item: JsonObject): void {
    const key = itemKey(event);
    const isMade =
      item["type"] === "function_call" || item["type"] === "custom_tool_call" || item["type"] === "reasoning";
    if (isMade && !this.#open.has(key)) this.#itemAdded(event, item);
    const open = this.#open.get(key);
    if (open === undefined) return this.#closeContents(key);
    if (!open.hasDelta && open.kind === "call") this.#delta(key, item["arguments"] ?? item["input"]);
    const signature = open.kind === "reasoning" ? readSeal(item) : undefined;
    if (signature !== undefined) this.#events.push({ kind: "signature", choice: 0, part: open.part, signature });
    this.#close(key);
  }

  #contentAdded(event: JsonObject): void {
    const type = objectOf(event["part"])?.["type"];
    if (type === "output_text") this.#openPart(contentKey(event), { kind: "text" });
    else if (type === "refusal") this.#openPart(contentKey(event), { kind: "refusal" });
  }

  #text(key: string, kind: Kind, text: JsonObject[string]): void {
    const given = readAnswerText(text, "text");
    if (given === "") return;
    if (!this.#open.has(key)) this.#openPart(key, { kind });
    this.#delta(key, given);
  }

  /** Uses the whole text of a part that had no deltas. */
  #whole(key: string, kind: Kind, text: JsonObject[string]): void {
    if (this.#open.get(key)?.hasDelta !== true) this.#text(key, kind, text);
  }

  #delta(key: string, text: JsonObject[string]): void {
    const open = this.#open.get(key);
    const given = readAnswerText(text, "delta");
    if (open === undefined || given === "") return;
    open.hasDelta = true;
    this.#events.push({ kind: "delta", choice: 0, part: open.part, text: given });
  }

  /** A thought may have several summaries. */
  #paragraph(key: string): void {
    if (this.#open.get(key)?.hasDelta === true) this.#delta(key, "\n\n");
  }

  #cite(event: JsonObject): void {
    const open = this.#open.get(contentKey(event));
    if (open === undefined) return;
    for (const citation of readCitation(event["annotation"]))
      this.#events.push({ kind: "citation", choice: 0, part: open.part, citation });
  }

  #openPart(key: string, opened: OpenedPart): void {
    if (this.#open.has(key)) return;
    if (this.#open.size >= MAX_OPEN)
      throw new ProxyError("llm_response_invalid", { detail: `more than ${MAX_OPEN} items of a stream are open` });
    this.#start({});
    if (opened.kind === "refusal") this.#hasRefused = true;
    // Only calls may overlap.
    for (const [other, { kind }] of this.#open) if (kind !== "call" || opened.kind !== "call") this.#close(other);
    const part = this.#parts++;
    this.#open.set(key, { part, kind: opened.kind, hasDelta: false });
    this.#events.push({ kind: "open", choice: 0, part, opened });
  }

  #close(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#events.push({ kind: "close", choice: 0, part: open.part });
  }

  #closeContents(item: string): void {
    for (const key of this.#open.keys()) if (key.startsWith(`${item}/`)) this.#close(key);
  }

  #finish(response: JsonObject): void {
    this.#start(response);
    for (const key of this.#open.keys()) this.#close(key);
    const usage = readUsage(objectOf(response["usage"]));
    const serviceTier = stringOf(response["service_tier"]);
    if (usage !== undefined)
      this.#events.push({ kind: "usage", usage, ...(serviceTier === undefined ? {} : { serviceTier }) });
    const stop = readStop(response, { hasCalls: this.#hasCalls, hasRefused: this.#hasRefused });
    this.#events.push({ kind: "stop", choice: 0, stop });
  }

  #fail(event: JsonObject): void {
    const response = objectOf(event["response"]);
    const { message, type, code } = readErrorObject(response ?? event);
    const error = { message: message === "" ? "the response failed" : message, type: type ?? typeOf(code) };
    this.#events.push({ kind: "error", error: { ...error, ...(code === undefined ? {} : { code }) } });
  }
}

function itemKey(event: JsonObject): string {
  return String(countOf(event["output_index"]) ?? 0);
}

function contentKey(event: JsonObject): string {
  return `${itemKey(event)}/${countOf(event["content_index"]) ?? 0}`;
}

/** Returns the type of an error that has only a code. */
function typeOf(code: string | undefined): string | undefined {
  if (code === "rate_limit_exceeded") return "rate_limit_error";
  return code?.startsWith("invalid_") === true ? "invalid_request_error" : undefined;
}

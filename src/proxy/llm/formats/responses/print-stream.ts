/**
 * Prints the events of a streamed response as server-sent events with a name. Each item is opened, filled and closed in
 * the order of the API; texts that follow each other are contents of one message, which stays open until another item
 * begins. Events at the end of a content, of an item and of the response repeat what came before as a whole, as clients
 * rely on it.
 *
 *     response.created
 *     response.output_item.added          an item begins
 *       response.content_part.added         a content of a message begins; reasoning_summary_part.added for a thought
 *         response.output_text.delta …
 *       response.output_text.done, response.content_part.done
 *     response.output_item.done
 *     response.completed                  or response.incomplete, or error and response.failed
 */
import { ProxyError } from "../../../exchange/errors.ts";
import type { Stop } from "../../conversation/answer.ts";
import type { AnswerEvent, DeltaEvent, VendorError } from "../../conversation/events.ts";
import type { Signature } from "../../conversation/conversation.ts";
import { unwrapFreeText } from "../../conversation/free-text.ts";
import { printSignature } from "../../conversation/signature.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AnswerContext, StreamPrinter } from "../chat-format.ts";
import { itemIdentifier, printAnnotations } from "./print-answer.ts";
import {
  contextOfResponse,
  errorCode,
  identifierOf,
  messageItem,
  outputText,
  printResponse,
  reasoningItem,
  refusalText,
  statusOf,
  type ResponseContext,
} from "./response-object.ts";
import { ClientTools } from "./tools.ts";

/** Prints the event that clients of the official library read; a response that the gateway has not begun has no other. */
export function printStreamError(error: VendorError, eventsBefore: number): string {
  const members = { ...errorMembers(error), sequence_number: eventsBefore };
  return `event: error\ndata: ${JSON.stringify({ type: "error", ...members })}\n\n`;
}

function errorMembers(error: VendorError): JsonObject {
  return { code: errorCode(error), message: error.message, param: null };
}

export function printStream(context: AnswerContext): StreamPrinter {
  return new ResponsesPrinter(context);
}

/** Characters of one answer that are kept for the events at its end; no model writes as many. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

interface OpenMessage {
  readonly id: string;
  readonly index: number;
  readonly content: JsonObject[];
}

/** A part that is open, with the event of its deltas around their text. */
interface OpenPart {
  readonly kind: "text" | "refusal" | "reasoning" | "call";
  readonly id: string;
  /** Index of its item in the output. */
  readonly index: number;
  readonly place: JsonObject;
  readonly call: { readonly id: string; readonly name: string } | undefined;
  /** undefined when the deltas are held until the part closes. */
  readonly before: string | undefined;
  text: string;
  signature: Signature | undefined;
  readonly annotations: JsonObject[];
}

class ResponsesPrinter implements StreamPrinter {
  readonly #context: ResponseContext;
  readonly #tools: ClientTools;
  readonly #parts = new Map<number, OpenPart>();
  readonly #output: JsonObject[] = [];
  #items = 0;
  #message: OpenMessage | undefined;
  #sequence = 0;
  #characters = 0;
  #identifier = "";
  #model = "";
  #stop: Stop = { reason: "end" };
  #usage: Usage | undefined;
  #serviceTier: string | undefined;

  constructor(context: AnswerContext) {
    this.#context = contextOfResponse(context);
    this.#tools = new ClientTools(context.request);
  }

  /** Every event has a number of its own. */
  isRepeatable(): boolean {
    return false;
  }

  printRepeated({ choice, part: number }: DeltaEvent, literal: string): string {
    const part = choice === 0 ? this.#parts.get(number) : undefined;
    return part === undefined ? "" : this.#delta(part, literal.slice(1, -1), literal);
  }

  print(event: AnswerEvent): string {
    switch (event.kind) {
      case "start":
        return this.#start(event.id, event.model);
      case "usage":
        this.#usage = event.usage;
        this.#serviceTier = event.serviceTier ?? this.#serviceTier;
        return "";
      case "error":
        return this.#start("", "") + this.#fail(event.error);
      default:
        // The format has one choice; clients cannot ask for more.
        return event.choice === 0 ? this.#start("", "") + this.#printPart(event) : "";
    }
  }

  end(): string {
    const closed = this.#start("", "") + this.#closeAll();
    const status = statusOf(this.#stop.reason);
    return closed + this.#event(`response.${status}`, { response: this.#response({ stop: this.#stop }) });
  }

  #printPart(event: Exclude<AnswerEvent, { kind: "start" | "usage" | "error" }>): string {
    if (event.kind === "open") return this.#open(event);
    if (event.kind === "stop") {
      this.#stop = event.stop;
      return this.#closeAll();
    }
    const part = this.#parts.get(event.part);
    if (part === undefined) return "";
    switch (event.kind) {
      case "delta":
        return this.#delta(part, event.text, JSON.stringify(event.text));
      case "signature":
        part.signature = event.signature;
        return "";
      case "citation":
        return printAnnotations([event.citation])
          .map((annotation) => this.#annotate(part, annotation))
          .join("");
      case "close":
        this.#parts.delete(event.part);
        return this.#close(part);
    }
  }

  /** Prints the first event, once. */
  #start(id: string, model: string): string {
    if (this.#identifier !== "") return "";
    this.#identifier = identifierOf(id);
    this.#model = model;
    return this.#event("response.created", { response: this.#response({}) });
  }

  #response(end: { stop?: Stop; error?: VendorError }): JsonObject {
    const state = { id: this.#identifier, model: this.#model, output: this.#output, serviceTier: this.#serviceTier };
    const usage = end.stop === undefined ? undefined : this.#usage;
    return printResponse({ ...state, ...end, usage }, this.#context);
  }

  #open({ part, opened }: AnswerEvent & { kind: "open" }): string {
    switch (opened.kind) {
      case "text":
      case "refusal":
        return this.#openContent(part, opened.kind);
      case "reasoning":
        return this.#closeMessage() + this.#openReasoning(part);
      case "call":
        return this.#closeMessage() + this.#openCall(part, opened);
      case "redacted": {
        const item = reasoningItem(this.#nextId(), undefined, printSignature(opened.data));
        const index = this.#items++;
        return this.#closeMessage() + this.#added(index, item) + this.#done(index, item);
      }
      default:
        return "";
    }
  }

  #openContent(number: number, kind: "text" | "refusal"): string {
    let opened = "";
    if (this.#message === undefined) {
      const id = this.#nextId();
      this.#message = { id, index: this.#items++, content: [] };
      opened = this.#added(this.#message.index, messageItem(id, [], "in_progress"));
    }
    const { id, index, content } = this.#message;
    const part = kind === "text" ? outputText("", []) : refusalText("");
    const place = { item_id: `msg_${id}`, output_index: index, content_index: content.length };
    content.push(part);
    const name = kind === "text" ? "output_text" : "refusal";
    this.#parts.set(number, this.#part(kind, { id, index, place, name }));
    return opened + this.#event("response.content_part.added", { ...place, part });
  }

  #openReasoning(number: number): string {
    const id = this.#nextId();
    const index = this.#items++;
    const place = { item_id: `rs_${id}`, output_index: index, summary_index: 0 };
    this.#parts.set(number, this.#part("reasoning", { id, index, place, name: "reasoning_summary_text" }));
    const added = this.#added(index, reasoningItem(id, undefined, undefined));
    return added + this.#event("response.reasoning_summary_part.added", { ...place, part: summaryText("") });
  }

  #openCall(number: number, call: { readonly id: string; readonly name: string }): string {
    const id = this.#nextId();
    const index = this.#items++;
    const isCustom = this.#tools.isCustom(call.name);
    const place = { item_id: `${isCustom ? "ctc" : "fc"}_${id}`, output_index: index };
    // The text of a custom tool stands inside the arguments, so it can only be printed when they are complete.
    const name = isCustom ? undefined : "function_call_arguments";
    this.#parts.set(number, this.#part("call", { id, index, place, name, call }));
    return this.#added(index, this.#tools.printCall(call, "", id, "in_progress"));
  }

  #part(
    kind: OpenPart["kind"],
    made: Pick<OpenPart, "id" | "index" | "place"> & { name: string | undefined; call?: OpenPart["call"] },
  ): OpenPart {
    const { name, call, ...rest } = made;
    const before = name === undefined ? undefined : deltaHead(`response.${name}.delta`, made.place);
    return { kind, ...rest, call, before, text: "", signature: undefined, annotations: [] };
  }

  /** @param literal the text as a JSON string */
  #delta(part: OpenPart, text: string, literal: string): string {
    if (text === "") return "";
    this.#characters += text.length;
    if (this.#characters > MAX_CHARACTERS)
      throw new ProxyError("llm_response_invalid", { detail: `an answer is longer than ${MAX_CHARACTERS} characters` });
    part.text += text;
    if (part.before === undefined) return "";
    const tail = part.kind === "text" ? ',"logprobs":[],"sequence_number":' : ',"sequence_number":';
    return `${part.before}${literal}${tail}${++this.#sequence}}\n\n`;
  }

  #annotate(part: OpenPart, annotation: JsonObject): string {
    if (part.kind !== "text") return "";
    const annotation_index = part.annotations.push(annotation) - 1;
    return this.#event("response.output_text.annotation.added", { ...part.place, annotation_index, annotation });
  }

  #close(part: OpenPart): string {
    const { kind, text, place } = part;
    if (kind === "call") return this.#closeCall(part);
    if (kind === "reasoning") {
      const sealed = part.signature === undefined ? undefined : printSignature(part.signature);
      return (
        this.#event("response.reasoning_summary_text.done", { ...place, text }) +
        this.#event("response.reasoning_summary_part.done", { ...place, part: summaryText(text) }) +
        this.#done(part.index, reasoningItem(part.id, text, sealed))
      );
    }
    const content = kind === "text" ? outputText(text, part.annotations) : refusalText(text);
    this.#message?.content.splice(Number(place["content_index"]), 1, content);
    const done =
      kind === "text"
        ? this.#event("response.output_text.done", { ...place, text, logprobs: [] })
        : this.#event("response.refusal.done", { ...place, refusal: text });
    return done + this.#event("response.content_part.done", { ...place, part: content });
  }

  #closeCall({ id, index, place, call = { id: "", name: "" }, text, before }: OpenPart): string {
    const item = this.#tools.printCall(call, text === "" ? "{}" : text, id, "completed");
    if (before === undefined) {
      const input = unwrapFreeText(text);
      const delta = this.#event("response.custom_tool_call_input.delta", { ...place, delta: input });
      const done = this.#event("response.custom_tool_call_input.done", { ...place, input });
      return delta + done + this.#done(index, item);
    }
    // Clients parse the arguments of every call, so a call without any gets an empty object.
    const delta = text === "" ? this.#event("response.function_call_arguments.delta", { ...place, delta: "{}" }) : "";
    const done = this.#event("response.function_call_arguments.done", {
      ...place,
      arguments: text === "" ? "{}" : text,
    });
    return delta + done + this.#done(index, item);
  }

  #closeAll(): string {
    let closed = "";
    for (const part of this.#parts.values()) closed += this.#close(part);
    this.#parts.clear();
    return closed + this.#closeMessage(statusOf(this.#stop.reason));
  }

  #closeMessage(status = "completed"): string {
    const message = this.#message;
    this.#message = undefined;
    return message === undefined ? "" : this.#done(message.index, messageItem(message.id, message.content, status));
  }

  #nextId(): string {
    return itemIdentifier(this.#identifier, this.#items);
  }

  #added(index: number, item: JsonObject): string {
    return this.#event("response.output_item.added", { output_index: index, item });
  }

  #done(index: number, item: JsonObject): string {
    this.#output[index] = item;
    return this.#event("response.output_item.done", { output_index: index, item });
  }

  /** Clients of the official library read the first event, Codex reads the second. */
  #fail(error: VendorError): string {
    return (
      this.#event("error", errorMembers(error)) +
      this.#event("response.failed", { response: this.#response({ error }) })
    );
  }

  #event(type: string, members: JsonObject): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, ...members, sequence_number: ++this.#sequence })}\n\n`;
  }
}

/** Returns an event of a text up to the text. */
function deltaHead(type: string, place: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...place }).slice(0, -1)},"delta":`;
}

function summaryText(text: string): JsonObject {
  return { type: "summary_text", text };
}

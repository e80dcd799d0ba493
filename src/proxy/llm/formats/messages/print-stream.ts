/** Prints a stream in the form of the Messages API: named server-sent events from `message_start` to `message_stop`. */
import type { Stop } from "../../conversation/answer.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import type { Signature } from "../../conversation/conversation.ts";
import { printCallId } from "../../conversation/call-id.ts";
import { printSignature } from "../../conversation/signature.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { StreamPrinter } from "../chat-format.ts";
import { printMessagesStreamError } from "./errors.ts";
import { messageId, printReason } from "./print-answer.ts";
import { printUsage } from "./usage.ts";

/** A block that is open. */
interface Block {
  readonly index: number;
  readonly kind: OpenedPart["kind"];
  readonly isFreeText: boolean;
}

export function printStream(): StreamPrinter {
  return new MessagesPrinter();
}

class MessagesPrinter implements StreamPrinter {
  readonly #blocks = new Map<number, Block>();
  #index = 0;
  #usage: Usage | undefined;
  #stop: Stop | undefined;
  #hasStarted = false;

  isRepeatable(event: AnswerEvent): boolean {
    return event.kind === "delta" && event.choice === 0 && this.#blocks.get(event.part)?.isFreeText === false;
  }

  /** The format has one choice; others are left out. */
  print(event: AnswerEvent): string {
    if ("choice" in event && event.choice !== 0) return "";
    switch (event.kind) {
      case "start":
        return this.#start(event.id, event.model);
      case "open":
        return this.#open(event.part, event.opened);
      case "delta":
        return this.#delta(event.part, event.text);
      case "signature":
        return this.#signature(event);
      case "citation":
        if (event.citation.vendor !== "anthropic") return "";
        return this.#blockDelta(event.part, { type: "citations_delta", citation: event.citation.value });
      case "close":
        return this.#close(event.part);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "stop":
        this.#stop = event.stop;
        return "";
      case "error":
        return printMessagesStreamError(event.error);
    }
  }

  end(): string {
    const { reason, sequence = null } = this.#stop ?? { reason: "end" };
    const delta = { stop_reason: printReason(reason), stop_sequence: sequence };
    return (
      (this.#hasStarted ? "" : this.#start("", "")) +
      [...this.#blocks.keys()].map((part) => this.#close(part)).join("") +
      named("message_delta", { type: "message_delta", delta, usage: printUsage(this.#usage) }) +
      named("message_stop", { type: "message_stop" })
    );
  }

  #start(id: string, model: string): string {
    this.#hasStarted = true;
    return named("message_start", {
      type: "message_start",
      message: {
        id: messageId(id),
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: printUsage(this.#usage),
      },
    });
  }

  #open(part: number, opened: OpenedPart): string {
    const content = blockOf(opened);
    if (content === undefined) return "";
    const signed = opened.kind === "call" && opened.signature !== undefined ? this.#thought(opened.signature) : "";
    const isFreeText = opened.kind === "call" && opened.isFreeText === true;
    const block = { index: this.#index++, kind: opened.kind, isFreeText };
    this.#blocks.set(part, block);
    const start = named("content_block_start", {
      type: "content_block_start",
      index: block.index,
      content_block: content,
    });
    // The text of the call becomes the only member of an object.
    return signed + (isFreeText ? start + this.#json(part, '{"input":"') : start);
  }

  #delta(part: number, text: string): string {
    const block = this.#blocks.get(part);
    switch (block?.kind) {
      case "text":
      case "refusal":
        return this.#blockDelta(part, { type: "text_delta", text });
      case "reasoning":
        return this.#blockDelta(part, { type: "thinking_delta", thinking: text });
      case "call":
        if (text === "") return "";
        return this.#json(part, block.isFreeText ? JSON.stringify(text).slice(1, -1) : text);
      default:
        return "";
    }
  }

  #signature({ part, signature }: AnswerEvent & { kind: "signature" }): string {
    if (this.#blocks.get(part)?.kind !== "reasoning") return this.#thought(signature);
    return this.#blockDelta(part, { type: "signature_delta", signature: printSignature(signature) });
  }

  /** Prints an empty thought: a signature of a text or of a call has no member of its own. */
  #thought(signature: Signature): string {
    const index = this.#index++;
    const delta = { type: "signature_delta", signature: printSignature(signature) };
    return (
      named("content_block_start", {
        type: "content_block_start",
        index,
        content_block: { type: "thinking", thinking: "", signature: "" },
      }) +
      named("content_block_delta", { type: "content_block_delta", index, delta }) +
      named("content_block_stop", { type: "content_block_stop", index })
    );
  }

  #json(part: number, text: string): string {
    return this.#blockDelta(part, { type: "input_json_delta", partial_json: text });
  }

  #blockDelta(part: number, delta: JsonObject): string {
    const index = this.#blocks.get(part)?.index;
    return index === undefined ? "" : named("content_block_delta", { type: "content_block_delta", index, delta });
  }

  #close(part: number): string {
    const block = this.#blocks.get(part);
    if (block === undefined) return "";
    const closing = block.isFreeText ? this.#json(part, '"}') : "";
    this.#blocks.delete(part);
    return closing + named("content_block_stop", { type: "content_block_stop", index: block.index });
  }
}

function blockOf(opened: OpenedPart): JsonObject | undefined {
  switch (opened.kind) {
    case "text":
    case "refusal":
      return { type: "text", text: "" };
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "redacted":
      return { type: "redacted_thinking", data: printSignature(opened.data) };
    case "call":
      return { type: "tool_use", id: printCallId(opened), name: opened.name, input: {} };
    case "vendor":
      return opened.vendor === "anthropic" ? opened.value : undefined;
  }
}

function named(event: string, value: JsonObject): string {
  return `event: ${event}\ndata: ${JSON.stringify(value)}\n\n`;
}

/** Prints a stream of chat completion chunks as server-sent events, closed by `[DONE]`. */
import { printCallId } from "../../conversation/call-id.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { unwrapFreeText } from "../../conversation/free-text.ts";
import { printSignature } from "../../conversation/signature.ts";
import { objectOf, type JsonObject } from "../../shared/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AnswerContext, StreamPrinter } from "../chat-format.ts";
import { customToolNames } from "./custom-tools.ts";
import { printCompletionsStreamError } from "./errors.ts";
import { finishReason, redactedBlock, thinkingBlock } from "./print-answer.ts";
import { printUsage } from "./usage.ts";

/** A part that is open in a choice. */
interface Part {
  readonly opened: OpenedPart;
  /** Index among the calls of the choice. */
  readonly call: number;
  hasDelta: boolean;
  /**
   * Thoughts so far; a signed thought is printed once more as a whole. Or the arguments so far of a custom tool, whose
   * text stands inside them and can only be printed when they are complete.
   */
  text: string;
  signature: string | undefined;
}

type Emit = (choice: number, delta: JsonObject, finish?: string | null, usage?: JsonObject) => string;

export function printStream(context: AnswerContext): StreamPrinter {
  return new CompletionsPrinter(context);
}

class CompletionsPrinter implements StreamPrinter {
  readonly #createdAt: number;
  readonly #showsUsage: boolean;
  readonly #customTools: ReadonlySet<string>;
  readonly #parts = new Map<string, Part>();
  readonly #calls = new Map<number, number>();
  readonly #roles = new Set<number>();
  /** Signed thoughts by choice, until the end of the choice. */
  readonly #blocks = new Map<number, JsonObject[]>();
  #id = "";
  #model = "";
  #usage: Usage | undefined;
  #hasShownUsage = false;

  constructor({ createdAt, request }: AnswerContext) {
    this.#createdAt = createdAt;
    this.#customTools = customToolNames(request);
    this.#showsUsage = objectOf(request["stream_options"])?.["include_usage"] === true;
  }

  isRepeatable(event: AnswerEvent): boolean {
    return event.kind === "delta" && this.#part(event)?.opened.kind === "text";
  }

  print(event: AnswerEvent): string {
    switch (event.kind) {
      case "start":
        this.#id = event.id;
        this.#model = event.model;
        return this.#role(0);
      case "open":
        return this.#role(event.choice) + this.#open(event);
      case "delta":
        return this.#delta(event);
      case "signature": {
        const part = this.#part(event);
        if (part !== undefined) part.signature = printSignature(event.signature);
        return "";
      }
      case "close":
        return this.#close(event);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "stop":
        return (
          this.#role(event.choice) +
          this.#thinkingBlocks(event.choice) +
          this.#stop(event.choice, finishReason(event.stop.reason))
        );
      case "error":
        return printCompletionsStreamError(event.error);
      case "citation":
        return "";
    }
  }

  end(): string {
    const usage =
      this.#showsUsage && !this.#hasShownUsage && this.#usage !== undefined
        ? data({ ...this.#head(), choices: [], usage: printUsage(this.#usage) })
        : "";
    return `${usage}data: [DONE]\n\n`;
  }

  #stop(choice: number, reason: string): string {
    const usage = this.#usage === undefined ? undefined : printUsage(this.#usage);
    if (usage !== undefined) this.#hasShownUsage = true;
    return this.#chunk(choice, {}, reason, usage);
  }

  /** The first chunk of each choice names the role. */
  #role(choice: number): string {
    if (this.#roles.has(choice)) return "";
    this.#roles.add(choice);
    return this.#chunk(choice, { role: "assistant", content: "" });
  }

  #open({ choice, part, opened }: AnswerEvent & { kind: "open" }): string {
    const call = opened.kind === "call" ? (this.#calls.get(choice) ?? 0) : 0;
    this.#parts.set(keyOf(choice, part), { opened, call, hasDelta: false, text: "", signature: undefined });
    if (opened.kind === "reasoning") return "";
    if (opened.kind === "redacted") {
      this.#addBlock(choice, redactedBlock(printSignature(opened.data)));
      return "";
    }
    if (opened.kind !== "call") return "";
    this.#calls.set(choice, call + 1);
    const { name } = opened;
    const id = printCallId(opened);
    const made = this.#isCustom(opened)
      ? { type: "custom", custom: { name, input: "" } }
      : { type: "function", function: { name, arguments: "" } };
    return this.#chunk(choice, { tool_calls: [{ index: call, id, ...made }] });
  }

  #addBlock(choice: number, block: JsonObject): void {
    this.#blocks.set(choice, [...(this.#blocks.get(choice) ?? []), block]);
  }

  /**
   * Returns all signed thoughts of a choice in one chunk. Thoughts may stand between texts and calls, and some clients
   * keep the last list that they get, while others append each to the one before.
   */
  #thinkingBlocks(choice: number): string {
    const blocks = this.#blocks.get(choice);
    if (blocks === undefined) return "";
    this.#blocks.delete(choice);
    return this.#chunk(choice, { thinking_blocks: blocks });
  }

  #delta(event: AnswerEvent & { kind: "delta" }): string {
    const part = this.#part(event);
    if (part === undefined || event.text === "") return "";
    part.hasDelta = true;
    const { choice, text } = event;
    switch (part.opened.kind) {
      case "reasoning":
        part.text += text;
        return this.#chunk(choice, { reasoning_content: text });
      case "refusal":
        return this.#chunk(choice, { refusal: text });
      case "call":
        if (this.#isWrapped(part.opened)) {
          part.text += text;
          return "";
        }
        return this.#arguments(choice, part, text);
      default:
        return this.#chunk(choice, { content: text });
    }
  }

  #arguments(choice: number, { opened, call: index }: Part, text: string): string {
    const made = this.#isCustom(opened) ? { custom: { input: text } } : { function: { arguments: text } };
    return this.#chunk(choice, { tool_calls: [{ index, ...made }] });
  }

  #close(event: AnswerEvent & { kind: "close" }): string {
    const part = this.#part(event);
    if (part === undefined) return "";
    this.#parts.delete(keyOf(event.choice, event.part));
    const { opened, hasDelta, text, signature } = part;
    if (this.#isWrapped(opened)) return this.#arguments(event.choice, part, unwrapFreeText(text));
    // Clients parse the arguments of every call, so a call without any gets an empty object.
    if (opened.kind === "call" && opened.isFreeText !== true && !hasDelta)
      return this.#arguments(event.choice, part, "{}");
    if (opened.kind !== "reasoning" || signature === undefined) return "";
    this.#addBlock(event.choice, thinkingBlock(text, signature));
    return "";
  }

  #isCustom(opened: OpenedPart): boolean {
    return opened.kind === "call" && (opened.isFreeText === true || this.#customTools.has(opened.name));
  }

  /** Whether the text of a call comes inside the arguments of a function. */
  #isWrapped(opened: OpenedPart): boolean {
    return opened.kind === "call" && opened.isFreeText !== true && this.#customTools.has(opened.name);
  }

  #part({ choice, part }: { choice: number; part: number }): Part | undefined {
    return this.#parts.get(keyOf(choice, part));
  }

  readonly #chunk: Emit = (index, delta, finish = null, usage) =>
    data({
      ...this.#head(),
      choices: [{ index, delta, logprobs: null, finish_reason: finish }],
      ...(usage === undefined ? {} : { usage }),
    });

  #head(): JsonObject {
    return { id: this.#id, object: "chat.completion.chunk", created: this.#createdAt, model: this.#model };
  }
}

function keyOf(choice: number, part: number): string {
  return `${choice}/${part}`;
}

function data(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

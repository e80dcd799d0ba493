/**
 * Prints a stream for clients of the Gemini API: server-sent events, or, for a request without `alt=sse`, the elements of
 * one JSON list. A call is printed whole when it closes; reason and usage come at the end.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import type { StopReason } from "../../conversation/answer.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import type { Signature } from "../../conversation/conversation.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AnswerContext, StreamPrinter } from "../chat-format.ts";
import { printGeminiStreamError } from "./errors.ts";
import { printCall, printRedacted, signed, wantsThoughts } from "./print-answer.ts";
import { printStop } from "./stop.ts";
import { printUsage } from "./usage.ts";

/** A part that is open in a choice. */
interface Part {
  readonly opened: OpenedPart;
  /** What is printed when the part closes: arguments, and thoughts that the client did not ask for. */
  text: string;
  signature: Signature | undefined;
}

/** Longest text of a part that is collected. */
const MAX_TEXT = 4 * 1024 * 1024;

export function printStream(context: AnswerContext): StreamPrinter {
  return new GeminiPrinter(context);
}

class GeminiPrinter implements StreamPrinter {
  readonly #showsThoughts: boolean;
  readonly #parts = new Map<string, Part>();
  readonly #stops = new Map<number, StopReason>();
  #id = "";
  #model = "";
  #usage: Usage | undefined;

  constructor({ request }: AnswerContext) {
    this.#showsThoughts = wantsThoughts(request);
  }

  isRepeatable(event: AnswerEvent): boolean {
    return event.kind === "delta" && this.#part(event)?.opened.kind === "text";
  }

  print(event: AnswerEvent): string {
    switch (event.kind) {
      case "start":
        this.#id = event.id;
        this.#model = event.model;
        return "";
      case "open":
        return this.#open(event);
      case "delta":
        return this.#delta(event);
      case "signature": {
        const part = this.#part(event);
        if (part !== undefined) part.signature = event.signature;
        return "";
      }
      case "close":
        return this.#close(event);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "stop":
        this.#stops.set(event.choice, event.stop.reason);
        return "";
      case "error":
        return printGeminiStreamError(event.error);
      case "citation":
        return "";
    }
  }

  end(): string {
    const candidates = [...this.#stops].map(([index, reason]) => ({
      content: { parts: [{ text: "" }], role: "model" },
      finishReason: printStop(reason),
      index,
    }));
    return data({
      candidates,
      ...(this.#usage === undefined ? {} : { usageMetadata: printUsage(this.#usage) }),
      modelVersion: this.#model,
      responseId: this.#id,
    });
  }

  #open({ choice, part, opened }: AnswerEvent & { kind: "open" }): string {
    if (opened.kind === "redacted") return this.#chunk(choice, printRedacted(opened.data));
    if (opened.kind === "vendor") return opened.vendor === "google" ? this.#chunk(choice, opened.value) : "";
    const signature = opened.kind === "call" ? opened.signature : undefined;
    this.#parts.set(keyOf(choice, part), { opened, text: "", signature });
    return "";
  }

  #delta(event: AnswerEvent & { kind: "delta" }): string {
    const part = this.#part(event);
    if (part === undefined) return "";
    const { choice, text } = event;
    switch (part.opened.kind) {
      case "text":
      case "refusal":
        return this.#chunk(choice, { text });
      case "reasoning":
        if (this.#showsThoughts) return this.#chunk(choice, { text, thought: true });
    }
    if (part.text.length + text.length > MAX_TEXT)
      throw new ProxyError("llm_response_invalid", {
        detail: `a part of the answer is longer than ${MAX_TEXT} characters`,
      });
    part.text += text;
    return "";
  }

  #close(event: AnswerEvent & { kind: "close" }): string {
    const part = this.#part(event);
    if (part === undefined) return "";
    this.#parts.delete(keyOf(event.choice, event.part));
    const { opened, text, signature } = part;
    if (opened.kind === "call") return this.#call(event.choice, opened, { text, signature });
    if (signature === undefined) return "";
    // Where the text went out before, its signature follows with an empty one.
    return this.#chunk(event.choice, {
      text,
      ...(opened.kind === "reasoning" ? { thought: true } : {}),
      ...signed(signature),
    });
  }

  #call(
    choice: number,
    { id, name, isFreeText }: OpenedPart & { kind: "call" },
    { text, signature }: Pick<Part, "text" | "signature">,
  ): string {
    const free = isFreeText === undefined ? {} : { isFreeText };
    return this.#chunk(
      choice,
      printCall({ id, name, arguments: text, ...free, ...(signature === undefined ? {} : { signature }) }),
    );
  }

  #part({ choice, part }: { choice: number; part: number }): Part | undefined {
    return this.#parts.get(keyOf(choice, part));
  }

  #chunk(index: number, part: JsonObject): string {
    return data({
      candidates: [{ content: { parts: [part], role: "model" }, index }],
      modelVersion: this.#model,
      responseId: this.#id,
    });
  }
}

function keyOf(choice: number, part: number): string {
  return `${choice}/${part}`;
}

function data(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/**
 * Body stream for a streamed response that is converted to the client's format, event by event. It writes at most once
 * per read of the upstream, pauses with its reader, and reports to the ledger however the stream ends.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { AnswerEvent, DeltaEvent } from "../conversation/events.ts";
import type { StreamPrinter, StreamReader } from "../formats/chat-format.ts";
import { parseObject } from "../shared/json.ts";
import type { Ending } from "../call/ledger.ts";
import type { Facts } from "../shared/usage.ts";
import { patternOf, Repetition, type Pattern } from "./repetition.ts";
import type { StreamParser } from "./framing.ts";
import { BEGINS_WITH_ERROR, isDone, parserOf, readStreamError, type StreamContext } from "./stream-context.ts";

/** Reader of the provider's events and printer of the client's. */
interface Translation {
  readonly reader: StreamReader;
  readonly printer: StreamPrinter;
}

interface RepeatedDelta {
  readonly delta: DeltaEvent;
  /** Its print around the text; undefined where the printer makes another event of each. */
  readonly printed: Pattern | undefined;
}

/**
 * Translates event by event. An error of the provider, or of the stream itself, reaches the client as an error event of
 * its format, and the stream then ends without the closing event. A stream that stops before the answer is complete is a
 * broken body, never a clean end.
 */
export function translateStream(source: BodyStream, context: StreamContext, translation: Translation): BodyStream {
  return new TranslatedStream(source, context, translation);
}

class TranslatedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: StreamContext;
  readonly #reader: StreamReader;
  readonly #printer: StreamPrinter;
  readonly #parser: StreamParser;
  readonly #facts: Facts = {};
  readonly #repetition = new Repetition();
  /** The delta that the repetition has learned. */
  #repeated: RepeatedDelta | undefined;
  #sink: BodySink | undefined;
  #output = "";
  #hasOutput = false;
  #hasText = false;
  /** `open` until the answer is complete; `failed` after an error event. */
  #state: "open" | "complete" | "failed" = "open";
  #over = false;

  constructor(source: BodyStream, context: StreamContext, { reader, printer }: Translation) {
    this.#source = source;
    this.#context = context;
    this.#reader = reader;
    this.#printer = printer;
    this.#parser = parserOf(context, (data, type) => this.#event(data, type));
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    if (!this.#over) this.#source.resume();
  }

  destroy(error?: Error): void {
    if (this.#over) return;
    this.#close("partial");
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#source.destroy();
      this.error(error as Error);
      return false;
    }
    if (this.#state !== "failed") return this.#flush();
    this.#source.destroy();
    if (!this.#hasOutput && !this.#hasText) return this.#refuse();
    this.#flush();
    this.#close("partial");
    this.#sink?.end([]);
    return false;
  }

  /** Fails the attempt: an error that comes first leaves time for a status, and for a retry. */
  #refuse(): false {
    this.#close("failed");
    this.#sink?.error(new ProxyError("llm_response_invalid", { detail: BEGINS_WITH_ERROR }));
    return false;
  }

  end(): void {
    if (this.#over) return;
    try {
      this.#parser.end();
      if (this.#state === "complete") this.#print(this.#reader.end());
    } catch (error) {
      return this.error(error as Error);
    }
    if (this.#state === "open")
      return this.error(new ProxyError("llm_response_invalid", { detail: "the stream ended before its answer did" }));
    if (this.#state === "complete") this.#output += this.#printer.end();
    this.#flush();
    this.#close(this.#state === "complete" ? "complete" : "partial");
    this.#sink?.end([]);
  }

  #event(data: string, type: string): void {
    if (this.#state === "failed") return;
    this.#context.ledger.flowing();
    const literal = this.#repetition.find(data, type);
    if (literal === undefined || this.#repeated === undefined) {
      this.#output += this.#translate(data, type);
      return;
    }
    this.#context.ledger.addText(literal.length - 2);
    this.#output += this.#printRepeated(this.#repeated, literal);
  }

  /** @param literal another text, as a JSON string without escapes */
  #printRepeated({ delta, printed }: RepeatedDelta, literal: string): string {
    if (printed !== undefined) return printed.before + literal + printed.after;
    return (
      this.#printer.printRepeated?.(delta, literal) ?? this.#printer.print({ ...delta, text: literal.slice(1, -1) })
    );
  }

  #translate(data: string, type: string): string {
    if (isDone(data)) {
      this.#state = "complete";
      return "";
    }
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event === undefined)
      throw new ProxyError("llm_response_invalid", { detail: "an event of the stream is not a JSON object" });
    const events = this.#reader.read(event, type);
    const output = events.map((each) => this.#printed(each)).join("");
    this.#learn(events, { data, type, output });
    return output;
  }

  /** Remembers an event that was read as one delta, and how it was printed. */
  #learn(
    [delta, ...others]: readonly AnswerEvent[],
    { data, type, output }: { readonly data: string; readonly type: string; readonly output: string },
  ): void {
    this.#repeated = undefined;
    if (delta?.kind === "delta" && others.length === 0) {
      const printed = this.#printer.isRepeatable(delta) ? patternOf(output, delta.text) : undefined;
      this.#repeated = { delta, printed };
    }
    this.#repetition.learn(this.#repeated?.delta.text, data, type);
  }

  #print(events: readonly AnswerEvent[]): void {
    for (const event of events) this.#output += this.#printed(event);
  }

  #printed(event: AnswerEvent): string {
    if (this.#state === "failed") return "";
    switch (event.kind) {
      case "start":
        if (event.model !== "") this.#facts.model = event.model;
        this.#context.ledger.record(this.#facts);
        break;
      case "usage":
        this.#facts.usage = event.usage;
        if (event.serviceTier !== undefined) this.#facts.serviceTier = event.serviceTier;
        this.#context.ledger.record(this.#facts);
        break;
      case "stop":
        this.#state = "complete";
        break;
      case "error":
        this.#state = "failed";
        break;
      case "delta":
        this.#hasText = true;
        if (this.#context.ledger.countsText) this.#context.ledger.addText(Buffer.byteLength(event.text));
        break;
      default:
    }
    return this.#printer.print(event);
  }

  #flush(): boolean {
    if (this.#output === "") return true;
    const output = Buffer.from(this.#output);
    this.#output = "";
    this.#hasOutput = true;
    return this.#sink?.data(output) ?? true;
  }

  /** Once the client has some of the answer, it also gets the error in its own format, and no clean end. */
  error(error: Error): void {
    if (this.#over) return;
    if (this.#hasOutput) {
      this.#output += this.#printer.print({ kind: "error", error: readStreamError(error) });
      this.#flush();
    }
    this.#close("partial");
    this.#sink?.error(error);
  }

  #close(ending: Ending): void {
    this.#over = true;
    this.#context.ledger.record(this.#facts);
    this.#context.ledger.settle(ending);
  }
}

/**
 * Body streams for streamed responses of providers (server-sent events). `ScannedStream` forwards the bytes and only
 * reads usage; `TranslatedStream` converts each event to the client's format. Both write at most once per read of the
 * upstream, pause with their reader, and report to the ledger however the stream ends.
 */
import { ProxyError } from "../../errors.ts";
import type { BodySink, BodyStream } from "../../pipeline/body.ts";
import type { StreamConverter } from "../convert/converter.ts";
import { mayCarryUsage, type Format } from "../formats/format.ts";
import { parseObject } from "../json.ts";
import type { Facts, Ledger } from "../usage.ts";
import { Repetition } from "./repetition.ts";
import { SseParser } from "./sse.ts";

export interface StreamContext {
  readonly format: Format;
  readonly ledger: Ledger;
  readonly maxEventBytes: number;
}

/**
 * Forwards the original bytes unchanged and parses only events that can carry the model or the usage. Events that
 * cannot be parsed are not counted, but still reach the client.
 */
export function scanStream(source: BodyStream, context: StreamContext): BodyStream {
  return new ScannedStream(source, context);
}

class ScannedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: StreamContext;
  readonly #parser: SseParser;
  readonly #facts: Facts = {};
  #sink: BodySink | undefined;
  #reading = true;

  constructor(source: BodyStream, context: StreamContext) {
    this.#source = source;
    this.#context = context;
    this.#parser = new SseParser(context.maxEventBytes, (data) => this.#event(data));
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#close();
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    if (this.#reading) this.#parse(chunk);
    return this.#sink?.data(chunk) ?? true;
  }

  end(trailers: readonly string[]): void {
    if (this.#reading) this.#parse(undefined);
    this.#close();
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    this.#close();
    this.#sink?.error(error);
  }

  /** @param chunk undefined at the end */
  #parse(chunk: Buffer | undefined): void {
    try {
      if (chunk === undefined) this.#parser.end();
      else this.#parser.push(chunk);
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      this.#reading = false;
    }
  }

  /** @param data as latin1, as in all methods below */
  #event(data: string): void {
    this.#context.ledger.flowing();
    if (this.#facts.model !== undefined && !mayCarryUsage(data)) return;
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event !== undefined) this.#context.format.stream(event, this.#facts);
  }

  #close(): void {
    this.#context.ledger.record(this.#facts);
    this.#context.ledger.settle();
  }
}

/**
 * Translates event by event. An error event of the provider reaches the client as an error event, and the stream then
 * ends without the closing event. A stream that stops before the response is complete is a broken body, never a clean
 * end.
 */
export function translateStream(source: BodyStream, context: StreamContext, converter: StreamConverter): BodyStream {
  return new TranslatedStream(source, context, converter);
}

class TranslatedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: StreamContext;
  readonly #converter: StreamConverter;
  readonly #parser: SseParser;
  readonly #facts: Facts = {};
  readonly #repetition = new Repetition();
  #sink: BodySink | undefined;
  #output = "";
  #over = false;

  constructor(source: BodyStream, context: StreamContext, converter: StreamConverter) {
    this.#source = source;
    this.#context = context;
    this.#converter = converter;
    this.#parser = new SseParser(context.maxEventBytes, (data) => this.#event(data));
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
    this.#close();
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
    if (this.#converter.state === "failed") {
      this.#flush();
      this.#close();
      this.#source.destroy();
      this.#sink?.end([]);
      return false;
    }
    return this.#flush();
  }

  end(): void {
    if (this.#over) return;
    try {
      this.#parser.end();
    } catch (error) {
      return this.error(error as Error);
    }
    if (this.#converter.state === "open") {
      this.#flush();
      return this.error(new ProxyError("upstream_broken", { detail: "the stream ended before its answer did" }));
    }
    if (this.#converter.state === "complete") this.#output += `data: ${this.#converter.farewell}\n\n`;
    this.#flush();
    this.#close();
    this.#sink?.end([]);
  }

  #event(data: string): void {
    this.#context.ledger.flowing();
    this.#output += this.#repetition.answer(data) ?? this.#convert(data);
  }

  #convert(data: string): string {
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event === undefined)
      throw new ProxyError("response_invalid", { detail: "an event of the stream is not a JSON object" });
    const learned = this.#context.format.stream(event, this.#facts);
    if (learned) this.#context.ledger.record(this.#facts);
    let output = "";
    for (const item of this.#converter.event(event)) output += `data: ${JSON.stringify(item)}\n\n`;
    this.#repetition.learn(learned ? undefined : this.#converter.textOf(event), data, output);
    return output;
  }

  #flush(): boolean {
    if (this.#output === "") return true;
    const output = Buffer.from(this.#output);
    this.#output = "";
    return this.#sink?.data(output) ?? true;
  }

  error(error: Error): void {
    if (this.#over) return;
    this.#close();
    this.#sink?.error(error);
  }

  #close(): void {
    this.#over = true;
    this.#context.ledger.record(this.#facts);
    this.#context.ledger.settle();
  }
}

/**
 * Answer streams on their way to the client. Both kinds write at most once per read of the upstream, pause with their
 * reader and tell the books what they learned, whichever way the stream ends.
 */
import { ProxyError } from "../../errors.ts";
import type { BodySink, BodyStream } from "../../pipeline/body.ts";
import type { StreamConverter } from "../convert/converter.ts";
import { mayCarryUsage, type Format } from "../formats/format.ts";
import { parseObject } from "../json.ts";
import type { Facts, Ledger } from "../usage.ts";
import { SseParser } from "./sse.ts";

export interface StreamContext {
  readonly format: Format;
  readonly ledger: Ledger;
  readonly maxEventBytes: number;
}

/**
 * Forwards the original bytes untouched and reads only the events that can tell the model or the usage. What cannot be
 * read is not counted, but still belongs to the client.
 */
export function scanStream(source: BodyStream, { format, ledger, maxEventBytes }: StreamContext): BodyStream {
  const facts: Facts = {};
  let reading = true;
  const parser = new SseParser(maxEventBytes, (_name, data) => {
    if (facts.model !== undefined && !mayCarryUsage(data)) return;
    const event = parseObject(data);
    if (event !== undefined) format.stream(event, facts);
  });
  const read = (step: () => void): void => {
    if (!reading) return;
    try {
      step();
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      reading = false;
    }
  };
  const close = (): void => {
    ledger.record(facts);
    ledger.settle();
  };
  return {
    read(sink) {
      source.read({
        data(chunk) {
          read(() => parser.push(chunk));
          return sink.data(chunk);
        },
        end(trailers) {
          read(() => parser.end());
          close();
          sink.end(trailers);
        },
        error(error) {
          close();
          sink.error(error);
        },
      });
    },
    resume: () => source.resume(),
    destroy(error) {
      close();
      source.destroy(error);
    },
  };
}

/**
 * Translates event by event. An error event of the provider reaches the client as one and ends the stream without the
 * closing event; a stream that stops before its answer is complete is a broken body, never a clean end.
 */
export function translateStream(source: BodyStream, context: StreamContext, converter: StreamConverter): BodyStream {
  return new TranslatedStream(source, context, converter);
}

class TranslatedStream implements BodyStream {
  readonly #source: BodyStream;
  readonly #context: StreamContext;
  readonly #converter: StreamConverter;
  readonly #parser: SseParser;
  readonly #facts: Facts = {};
  #output = "";
  #over = false;

  constructor(source: BodyStream, context: StreamContext, converter: StreamConverter) {
    this.#source = source;
    this.#context = context;
    this.#converter = converter;
    this.#parser = new SseParser(context.maxEventBytes, (_name, data) => this.#event(data));
  }

  read(sink: BodySink): void {
    this.#source.read({
      data: (chunk) => this.#over || this.#data(chunk, sink),
      end: () => this.#over || this.#end(sink),
      error: (error) => this.#over || this.#fail(error, sink),
    });
  }

  resume(): void {
    if (!this.#over) this.#source.resume();
  }

  destroy(error?: Error): void {
    if (this.#over) return;
    this.#close();
    this.#source.destroy(error);
  }

  #data(chunk: Buffer, sink: BodySink): boolean {
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#source.destroy();
      this.#fail(error as Error, sink);
      return false;
    }
    if (this.#converter.state === "failed") {
      this.#flush(sink);
      this.#close();
      this.#source.destroy();
      sink.end([]);
      return false;
    }
    return this.#flush(sink);
  }

  #end(sink: BodySink): void {
    try {
      this.#parser.end();
    } catch (error) {
      return this.#fail(error as Error, sink);
    }
    if (this.#converter.state === "open") {
      this.#flush(sink);
      return this.#fail(new ProxyError("upstream_broken", { detail: "the stream ended before its answer did" }), sink);
    }
    if (this.#converter.state === "complete") this.#output += `data: ${this.#converter.farewell}\n\n`;
    this.#flush(sink);
    this.#close();
    sink.end([]);
  }

  #event(data: Buffer): void {
    const event = parseObject(data);
    if (event === undefined)
      throw new ProxyError("response_invalid", { detail: "an event of the stream is not a JSON object" });
    if (this.#context.format.stream(event, this.#facts)) this.#context.ledger.record(this.#facts);
    for (const item of this.#converter.event(event)) this.#output += `data: ${JSON.stringify(item)}\n\n`;
  }

  #flush(sink: BodySink): boolean {
    if (this.#output === "") return true;
    const output = Buffer.from(this.#output);
    this.#output = "";
    return sink.data(output);
  }

  #fail(error: Error, sink: BodySink): void {
    this.#close();
    sink.error(error);
  }

  #close(): void {
    this.#over = true;
    this.#context.ledger.record(this.#facts);
    this.#context.ledger.settle();
  }
}

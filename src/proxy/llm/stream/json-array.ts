/**
 * Writes a stream of server-sent events as one JSON list, the form of streams that the Gemini API has for requests
 * without `alt=sse`. Each event becomes an element as soon as it is complete.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import { printGeminiError } from "../formats/gemini/errors.ts";
import { parseObject } from "../shared/json.ts";
import { SseParser } from "./sse.ts";
import { readStreamError } from "./stream-context.ts";

/** @param maxEventBytes limit of one event */
export function writeJsonArray(source: BodyStream, maxEventBytes: number): BodyStream {
  return new JsonArrayStream(source, maxEventBytes);
}

class JsonArrayStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #parser: SseParser;
  #sink: BodySink | undefined;
  /** As latin1, like the data of events. */
  #output = "";
  #hasElements = false;
  #over = false;

  constructor(source: BodyStream, maxEventBytes: number) {
    this.#source = source;
    this.#parser = new SseParser(maxEventBytes, (data) => {
      // One element that is no JSON would make the whole list unreadable.
      if (parseObject(Buffer.from(data, "latin1")) === undefined)
        throw new ProxyError("llm_response_invalid", { detail: "an event of the stream is not a JSON object" });
      this.#add(data);
    });
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    if (!this.#over) this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#over = true;
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#source.destroy();
      this.#fail(error as Error);
      return false;
    }
    return this.#flush();
  }

  end(trailers: readonly string[]): void {
    if (this.#over) return;
    try {
      this.#parser.end();
    } catch (error) {
      return this.#fail(error as Error);
    }
    if (!this.#hasElements)
      return this.error(new ProxyError("llm_response_invalid", { detail: "the stream has no events" }));
    this.#output += "]";
    this.#flush();
    this.#over = true;
    this.#sink?.end(trailers);
  }

  /** The source has told of its own error in an event. */
  error(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink?.error(error);
  }

  #add(element: string): void {
    this.#output += this.#hasElements ? `,\r\n${element}` : `[${element}`;
    this.#hasElements = true;
  }

  /** Ends a list that has begun, and is never closed, with the error of this stream itself. */
  #fail(error: Error): void {
    if (!this.#hasElements) return this.error(error);
    this.#add(Buffer.from(JSON.stringify(printGeminiError(readStreamError(error)))).toString("latin1"));
    this.#flush();
    this.error(error);
  }

  #flush(): boolean {
    if (this.#output === "") return true;
    const bytes = Buffer.from(this.#output, "latin1");
    this.#output = "";
    return this.#sink?.data(bytes) ?? true;
  }
}

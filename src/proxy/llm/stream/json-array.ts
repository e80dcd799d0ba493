/**
 * Writes a stream of server-sent events as one JSON list, the form of streams that the Gemini API has for requests
 * without `alt=sse`. Each event becomes an element as soon as it is complete.
 */
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import { SseParser } from "./sse.ts";

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
      this.#output += this.#hasElements ? `,\r\n${data}` : `[${data}`;
      this.#hasElements = true;
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
      this.error(error as Error);
      return false;
    }
    return this.#flush();
  }

  end(trailers: readonly string[]): void {
    if (this.#over) return;
    try {
      this.#parser.end();
    } catch (error) {
      return this.error(error as Error);
    }
    this.#output += this.#hasElements ? "]" : "[]";
    this.#flush();
    this.#over = true;
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink?.error(error);
  }

  #flush(): boolean {
    if (this.#output === "") return true;
    const bytes = Buffer.from(this.#output, "latin1");
    this.#output = "";
    return this.#sink?.data(bytes) ?? true;
  }
}

/**
 * Reads the events of a stream (WHATWG HTML §9.2.6) while it is forwarded, for reports. Bytes are passed on before they
 * are read and are never held; an event above the limit passes unread.
 */
import type { BodySink, BodyStream } from "../exchange/body.ts";
import { SseParser } from "../llm/stream/sse.ts";

const MAX_EVENT_BYTES = 262_144;

export class ReadEvents implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #parser: SseParser;
  #sink: BodySink | undefined;

  /** @param onEvent receives the data of each event */
  constructor(source: BodyStream, onEvent: (data: Buffer) => void) {
    this.#source = source;
    this.#parser = new SseParser(MAX_EVENT_BYTES, (data) => onEvent(Buffer.from(data, "latin1")), "skip");
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#sink = undefined;
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    // Read first: a sink may give the block of the chunk away once its bytes are sent.
    this.#parser.push(chunk);
    return this.#sink?.data(chunk) ?? true;
  }

  end(trailers: readonly string[]): void {
    this.#parser.end();
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    this.#sink?.error(error);
  }
}

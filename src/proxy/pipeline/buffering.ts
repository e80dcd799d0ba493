/** Collects a streamed body up to a limit; one that is longer goes on as a stream with nothing lost. */
import type { BodySink, BodyStream } from "./body.ts";
import type { Abortable } from "./exchange.ts";

export class Collector implements BodySink, BodyStream, Abortable {
  readonly #source: BodyStream;
  readonly #limit: number;
  readonly #settle: { resolve: (body: Buffer | undefined) => void; reject: (error: Error) => void };
  #chunks: Buffer[] = [];
  #size = 0;
  #state: "collecting" | "overflow" | "forwarding" | "over" = "collecting";
  #sink: BodySink | undefined;
  /** What the source said before the new reader came. */
  #ended: readonly string[] | undefined;
  #failure: Error | undefined;

  constructor(
    source: BodyStream,
    limit: number,
    settle: { resolve: (body: Buffer | undefined) => void; reject: (error: Error) => void },
  ) {
    this.#source = source;
    this.#limit = limit;
    this.#settle = settle;
  }

  start(): void {
    this.#source.read(this);
  }

  data(chunk: Buffer): boolean {
    if (this.#state === "forwarding") return this.#sink?.data(chunk) ?? false;
    if (this.#state === "over") return false;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#state === "collecting" && this.#size > this.#limit) {
      this.#state = "overflow";
      this.#settle.resolve(undefined);
    }
    return this.#state === "collecting";
  }

  end(trailers: readonly string[]): void {
    if (this.#state === "forwarding") this.#sink?.end(trailers);
    else if (this.#state === "overflow") this.#ended = trailers;
    else if (this.#state === "collecting") {
      this.#state = "over";
      this.#settle.resolve(this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks));
    }
  }

  error(error: Error): void {
    if (this.#state === "forwarding") this.#sink?.error(error);
    else if (this.#state === "overflow") this.#failure = error;
    else this.abort(error);
  }

  abort(error: Error): void {
    if (this.#state !== "collecting") return;
    this.#state = "over";
    this.#source.destroy();
    this.#settle.reject(error);
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#state = "forwarding";
    let more = true;
    for (const chunk of this.#chunks) more = sink.data(chunk);
    this.#chunks = [];
    if (this.#failure !== undefined) sink.error(this.#failure);
    else if (this.#ended !== undefined) sink.end(this.#ended);
    else if (more) this.#source.resume();
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#state = "over";
    this.#chunks = [];
    this.#source.destroy(error);
  }
}

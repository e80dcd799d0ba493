/** Holds the start of a streamed body in memory; one that is longer goes on as a stream with nothing lost. */
import type { Body, BodySink, BodyStream } from "./body.ts";
import type { Abortable } from "./exchange.ts";

export interface HeldBody {
  /** Whether `start` is all of it. */
  readonly complete: boolean;
  /** What arrived until it was decided: more than the limit when it is not complete. */
  readonly start: Buffer;
  /** The body from its first byte again, trailers included. */
  readonly body: Body;
}

/**
 * Reads until the end, or until more than the limit is there; the source then pauses.
 * @param exchange whose end gives up the waiting; unset where the source itself breaks off then
 */
export function holdStart(
  source: BodyStream,
  limitBytes: number,
  exchange?: { onAbort(target: Abortable): void },
): Promise<HeldBody> {
  const { promise, resolve, reject } = Promise.withResolvers<HeldBody>();
  const collector = new Collector(source, limitBytes, { resolve, reject });
  exchange?.onAbort(collector);
  collector.start();
  return promise;
}

interface Settle {
  resolve(held: HeldBody): void;
  reject(error: Error): void;
}

class Collector implements BodySink, BodyStream, Abortable {
  readonly #source: BodyStream;
  readonly #limit: number;
  readonly #settle: Settle;
  #chunks: Buffer[] = [];
  #size = 0;
  #state: "collecting" | "held" | "forwarding" | "over" = "collecting";
  #sink: BodySink | undefined;
  /** What the source said before the new reader came. */
  #ended: readonly string[] | undefined;
  #failure: Error | undefined;

  constructor(source: BodyStream, limit: number, settle: Settle) {
    this.#source = source;
    this.#limit = limit;
    this.#settle = settle;
  }

  start(): void {
    if (this.#state === "collecting") this.#source.read(this);
  }

  data(chunk: Buffer): boolean {
    if (this.#state === "forwarding") return this.#sink?.data(chunk) ?? false;
    if (this.#state === "over") return false;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#state === "collecting" && this.#size > this.#limit) this.#decide(false, this);
    return this.#state === "collecting";
  }

  end(trailers: readonly string[]): void {
    if (this.#state === "forwarding") return this.#sink?.end(trailers);
    this.#ended = trailers;
    if (this.#state === "collecting") this.#decide(true, trailers.length === 0 ? undefined : this);
  }

  error(error: Error): void {
    if (this.#state === "forwarding") this.#sink?.error(error);
    else if (this.#state === "held") this.#failure = error;
    else this.abort(error);
  }

  abort(error: Error): void {
    if (this.#state !== "collecting") return;
    this.#state = "over";
    this.#source.destroy();
    this.#settle.reject(error);
  }

  #decide(complete: boolean, body: BodyStream | undefined): void {
    this.#state = "held";
    const [first] = this.#chunks;
    const start = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    this.#settle.resolve({ complete, start, body: body ?? start });
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
    if (this.#ended === undefined) this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#state = "over";
    this.#chunks = [];
    this.#source.destroy(error);
  }
}

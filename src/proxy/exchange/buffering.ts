/**
 * Holds the start of a streamed body in memory. A body that is longer than the limit continues as a stream from its
 * first byte. Used for request and response buffering and for bodies that expressions read.
 */
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { Body, BodySink, BodyStream } from "./body.ts";
import type { Abortable } from "./exchange.ts";

export interface HeldBody {
  /** True when `start` is the whole body. */
  readonly complete: boolean;
  /** The bytes that arrived until the decision. Longer than the limit when the body is not complete. */
  readonly start: Buffer;
  /** The body from its first byte, trailers included. */
  readonly body: Body;
}

/**
 * Reads until the end, or until more than `limitBytes` have arrived; the source then pauses.
 * @param exchange rejects the wait when it is aborted; omit it where the source itself breaks off in that case
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

/**
 * Sink of the source first, source of the next reader afterwards.
 *
 *   collecting ──end or over the limit──▶ held ──read()──▶ forwarding
 *       └───────error or abort─────────▶ over ◀──destroy()──┘
 *
 * Between `held` and `forwarding` the source may still deliver chunks, its end or an error. They are kept and replayed
 * to the new reader in order; without that, bytes would be lost between the decision and the call of `read`. The reader
 * may pause in the middle of the replay, so what the source delivers meanwhile is kept as well.
 */
class Collector implements BodySink, BodyStream, Abortable {
  readonly #source: BodyStream;
  readonly #limit: number;
  /** undefined once it is decided; it would keep the held bytes with it. */
  #settle: Settle | undefined;
  #chunks: Buffer[] = [];
  /** Index of the first chunk that is not replayed yet. */
  #next = 0;
  #size = 0;
  #state: "collecting" | "held" | "forwarding" | "over" = "collecting";
  #sink: BodySink | undefined;
  /** The end or error that the source reported before the new reader came. */
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
    if (this.#state === "over") return false;
    if (this.#state === "forwarding" && this.#isReplayed) return this.#sink?.data(chunk) ?? false;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#state === "collecting" && this.#size > this.#limit) this.#decide(false, this);
    return this.#state === "collecting";
  }

  end(trailers: readonly string[]): void {
    if (this.#state === "forwarding" && this.#isReplayed) return this.#sink?.end(trailers);
    this.#ended = trailers;
    if (this.#state === "collecting") this.#decide(true, trailers.length === 0 ? undefined : this);
  }

  error(error: Error): void {
    if (this.#state === "forwarding") this.#fail(error);
    else if (this.#state === "held") this.#failure = error;
    else this.abort(error);
  }

  /** Tells the reader at once, whatever it has not taken yet. */
  #fail(error: Error): void {
    this.#state = "over";
    this.#chunks = [];
    this.#next = 0;
    this.#sink?.error(error);
  }

  abort(error: Error): void {
    if (this.#state !== "collecting") return;
    this.#state = "over";
    this.#source.destroy();
    this.#settle?.reject(error);
  }

  #decide(complete: boolean, body: BodyStream | undefined): void {
    this.#state = "held";
    const [first] = this.#chunks;
    const isWhole = this.#chunks.length === 1 && first !== undefined;
    const start = isWhole ? first : Buffer.concat(this.#chunks);
    this.#settle?.resolve({ complete, start, body: body ?? start });
    // This object lives as long as the request, to which it is registered; the bytes of a complete body need not.
    this.#settle = undefined;
    if (body !== undefined) return;
    if (!isWhole && this.#source.givesChunks === true) this.#chunks.forEach(freeBuffer);
    this.#chunks = [];
  }

  get #isReplayed(): boolean {
    return this.#next === this.#chunks.length;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#state = "forwarding";
    this.#replay(sink);
  }

  resume(): void {
    if (this.#sink !== undefined && !this.#isReplayed) this.#replay(this.#sink);
    else if (this.#ended === undefined) this.#source.resume();
  }

  /** Hands over the kept chunks until the sink pauses, then what came after them. */
  #replay(sink: BodySink): void {
    let hasRoom = true;
    while (hasRoom && !this.#isReplayed) {
      const chunk = this.#chunks[this.#next++];
      hasRoom = chunk === undefined || sink.data(chunk);
    }
    // The sink may have destroyed the body, which also drops the chunks.
    if (this.#state !== "forwarding" || !this.#isReplayed) return;
    this.#chunks = [];
    this.#next = 0;
    if (this.#failure !== undefined) sink.error(this.#failure);
    else if (this.#ended !== undefined) sink.end(this.#ended);
    else if (hasRoom) this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#state = "over";
    this.#chunks = [];
    this.#next = 0;
    this.#source.destroy(error);
  }
}

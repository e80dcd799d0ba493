/**
 * A body that streams through an external processor: the original is sent piece by piece while the processor's version
 * comes back, in fewer, more or later pieces. `side-processor.ts` uses it for the full-duplex mode.
 *
 *   source ──data──▶ session.send ──▶ processor
 *                                         │ message
 *   reader ◀──emit── queue ◀──────────────┘
 *
 * Backpressure works in two steps: a reader that takes no more pauses the source first, and the processor only when
 * that is not enough and the queue exceeds HIGH_BYTES. States:
 * - flowing: the processor supplies the content
 * - bypassed: the processor left before any byte was handed over; the source flows directly to the reader
 * - ended: the last byte is queued, and the end follows when the queue is empty
 * - over: finished, failed or given up
 */
import type { ProcessingResponse } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { CalloutError } from "../../callouts/callout.ts";
import type { Body, BodySink, BodyStream } from "../../exchange/body.ts";
import { bodyPart, mutateTrailers, trailersPart } from "./messages.ts";
import type { Kind } from "./modes.ts";
import type { ProcSession, Streamer } from "./session.ts";

/** Longest queue of processed bytes before the processor is paused. */
const HIGH_BYTES = 1_048_576;
/** Longest piece of a body in one message: gRPC servers take messages of 4 MiB where they are not told otherwise. */
const PIECE_BYTES = 1_048_576;
const NOTHING = Buffer.alloc(0);

export class DuplexBody implements BodyStream, BodySink, Streamer {
  readonly #source: Exclude<Body, null>;
  readonly #kind: Kind;
  readonly #session: ProcSession;
  readonly #failOpen: boolean;
  readonly #sendsTrailers: boolean;
  #sink: BodySink | undefined;
  #queue: Buffer[] = [];
  #queued = 0;
  #trailers: readonly string[] = [];
  #state: "flowing" | "ended" | "bypassed" | "over" = "flowing";
  #failure: Error | undefined;
  #inputEnded = false;
  #stalled = false;
  #blocked = false;
  #paused = false;

  constructor(source: Exclude<Body, null>, kind: Kind, session: ProcSession, failOpen: boolean) {
    this.#source = source;
    this.#kind = kind;
    this.#session = session;
    this.#failOpen = failOpen;
    this.#sendsTrailers = session.modes[kind].trailers;
  }

  /** Starts to send. */
  start(): void {
    this.#session.stream(this.#kind, this);
    if (this.#session.over) this.closed(undefined);
    if (!Buffer.isBuffer(this.#source)) this.#source.read(this);
    else {
      if (this.#state === "flowing") this.#session.handed = true;
      let at = 0;
      for (; this.#source.length - at > PIECE_BYTES; at += PIECE_BYTES)
        if (this.#state === "flowing")
          this.#session.send(this.#kind, bodyPart(this.#kind, this.#source.subarray(at, at + PIECE_BYTES), false));
      this.#finishInput(this.#state === "bypassed" ? this.#source : this.#source.subarray(at), []);
    }
  }

  // Side of the source: the original body arrives.

  data(chunk: Buffer): boolean {
    if (this.#state === "bypassed") return this.#emit(chunk);
    if (this.#state !== "flowing") return true;
    this.#session.handed = true;
    if (!this.#session.send(this.#kind, bodyPart(this.#kind, chunk, false)) && !this.#stalled) {
      this.#stalled = true;
      this.#session.owe(1);
    }
    return !this.#stalled && !this.#blocked;
  }

  end(trailers: readonly string[]): void {
    this.#finishInput(NOTHING, trailers);
  }

  error(error: Error): void {
    this.#session.streamed(this.#kind);
    this.#fail(error);
  }

  #finishInput(last: Buffer, trailers: readonly string[]): void {
    this.#trailers = trailers;
    this.#inputEnded = true;
    if (this.#state === "bypassed") {
      if (last.length > 0) this.#emit(last);
      this.#finish();
    } else if (this.#state === "flowing") {
      const asks = trailers.length > 0 && this.#sendsTrailers;
      if (!asks || last.length > 0) this.#session.send(this.#kind, bodyPart(this.#kind, last, !asks));
      if (asks) this.#session.send(this.#kind, trailersPart(this.#kind, trailers));
      this.#session.owe(1);
    }
  }

  drain(): void {
    if (!this.#stalled) return;
    this.#stalled = false;
    this.#session.owe(-1);
    this.#pull();
  }

  // Side of the processor: its version of the body arrives.

  message({ response }: ProcessingResponse): void {
    switch (response.case) {
      case "requestBody":
      case "responseBody": {
        const mutation = response.value.response?.bodyMutation?.mutation;
        if (mutation?.case !== "streamedResponse") {
          this.#session.fail(new CalloutError("the processor answers a streamed body with something else"));
          return;
        }
        const { body, endOfStream } = mutation.value;
        if (body.length > 0) this.#emit(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
        if (endOfStream) this.#done();
        break;
      }
      case "requestTrailers":
      case "responseTrailers":
        this.#trailers = mutateTrailers(response.value.headerMutation, this.#trailers);
        this.#done();
        break;
      default:
        this.#session.fail(new CalloutError("the processor sent an answer out of place"));
    }
  }

  closed(error: Error | undefined): void {
    if (this.#state !== "flowing") return;
    const untouched =
      !this.#session.handed && (error === undefined || (this.#failOpen && error instanceof CalloutError));
    if (!untouched) this.#fail(error ?? new CalloutError("the processor left in the middle of a body"));
    else this.#state = "bypassed";
  }

  #done(): void {
    if (this.#state !== "flowing") return;
    if (this.#inputEnded) this.#session.owe(-1);
    this.#session.streamed(this.#kind);
    this.#finish();
  }

  #finish(): void {
    this.#state = "ended";
    if (this.#sink !== undefined && this.#queue.length === 0) this.#close();
  }

  #fail(error: Error): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#failure = error;
    this.#queue = [];
    if (!Buffer.isBuffer(this.#source)) this.#source.destroy(error);
    this.#sink?.error(error);
  }

  // Side of the reader.

  read(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failure !== undefined) sink.error(this.#failure);
    else this.#flush();
  }

  resume(): void {
    this.#blocked = false;
    this.#flush();
  }

  destroy(error?: Error): void {
    this.#state = "over";
    this.#sink = undefined;
    this.#queue = [];
    this.#session.streamed(this.#kind);
    if (!Buffer.isBuffer(this.#source)) this.#source.destroy(error);
  }

  #emit(chunk: Buffer): boolean {
    if (this.#sink === undefined || this.#blocked || this.#queue.length > 0) {
      this.#queue.push(chunk);
      this.#queued += chunk.length;
      if (this.#queued > HIGH_BYTES && !this.#paused) {
        this.#paused = true;
        this.#session.pause();
      }
    } else this.#blocked = !this.#sink.data(chunk);
    return !this.#blocked && this.#queued <= HIGH_BYTES;
  }

  #flush(): void {
    while (!this.#blocked && this.#sink !== undefined) {
      const chunk = this.#queue.shift();
      if (chunk === undefined) break;
      this.#queued -= chunk.length;
      this.#blocked = !this.#sink.data(chunk);
    }
    if (this.#paused && this.#queued <= HIGH_BYTES) {
      this.#paused = false;
      this.#session.resume();
    }
    if (this.#blocked || this.#sink === undefined) return;
    if (this.#state === "ended") this.#close();
    else this.#pull();
  }

  #close(): void {
    const sink = this.#sink;
    this.#state = "over";
    this.#sink = undefined;
    sink?.end(this.#trailers);
  }

  #pull(): void {
    if (!this.#blocked && !this.#stalled && !this.#inputEnded && !Buffer.isBuffer(this.#source)) this.#source.resume();
  }
}

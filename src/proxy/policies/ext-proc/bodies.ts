/**
 * Bodies of which an external processor has seen a part: `SplicedBody` has a replaced start, and `TrailedBody` shows
 * its trailers to the processor. `side-processor.ts` uses them; duplex-body.ts has the body that streams through it.
 */
import type { ProcessingResponse } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { CalloutError } from "../../callouts/callout.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import { mutateTrailers, trailersPart } from "./messages.ts";
import type { Kind } from "./modes.ts";
import type { ProcSession } from "./session.ts";

/** Replaces the first `skip` bytes of the source by another start. */
export class SplicedBody implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #start: Buffer;
  #skip: number;
  #sink: BodySink | undefined;
  #isReading = false;

  constructor(source: BodyStream, skip: number, start: Buffer) {
    this.#source = source;
    this.#skip = skip;
    this.#start = start;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    // A sink without room asks for the rest with `resume`.
    if (this.#start.length === 0 || sink.data(this.#start)) this.resume();
  }

  data(chunk: Buffer): boolean {
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    return skipped === chunk.length || (this.#sink?.data(chunk.subarray(skipped)) ?? false);
  }

  end(trailers: readonly string[]): void {
    this.#sink?.end(trailers);
  }

  error(error: Error): void {
    this.#sink?.error(error);
  }

  resume(): void {
    if (this.#isReading) return this.#source.resume();
    this.#isReading = true;
    this.#source.read(this);
  }

  destroy(error?: Error): void {
    this.#sink = undefined;
    this.#source.destroy(error);
  }
}

/** Forwards a body unchanged and lets the processor edit its trailers. */
export class TrailedBody implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #kind: Kind;
  readonly #session: ProcSession;
  readonly #failOpen: boolean;
  #sink: BodySink | undefined;

  constructor(source: BodyStream, kind: Kind, session: ProcSession, failOpen: boolean) {
    this.#source = source;
    this.#kind = kind;
    this.#session = session;
    this.#failOpen = failOpen;
    session.hold();
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  data(chunk: Buffer): boolean {
    return this.#sink?.data(chunk) ?? false;
  }

  end(trailers: readonly string[]): void {
    if (trailers.length === 0) {
      this.#session.release();
      this.#sink?.end(trailers);
      return;
    }
    const answer = this.#kind === "request" ? "requestTrailers" : "responseTrailers";
    this.#session
      .ask(this.#kind, trailersPart(this.#kind, trailers), answer)
      .then(this.#answered.bind(this, trailers), this.#failed.bind(this, trailers));
  }

  #answered(trailers: readonly string[], message: ProcessingResponse | undefined): void {
    this.#session.release();
    const { response } = message ?? {};
    if (response?.case === "immediateResponse") this.#sink?.error(new CalloutError("the processor ended the message"));
    else if (response?.case !== "requestTrailers" && response?.case !== "responseTrailers") this.#sink?.end(trailers);
    else this.#sink?.end(mutateTrailers(response.value.headerMutation, trailers));
  }

  #failed(trailers: readonly string[], error: Error): void {
    this.#session.release();
    if (this.#failOpen && !this.#session.handed && error instanceof CalloutError) this.#sink?.end(trailers);
    else this.#sink?.error(error);
  }

  error(error: Error): void {
    this.#sink?.error(error);
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#sink = undefined;
    this.#source.destroy(error);
  }
}

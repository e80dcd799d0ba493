/**
 * The gRPC stream between one request and its external processor. It matches answers of the processor to the calls that
 * wait for them, passes body pieces to the streaming bodies, and limits how long the processor may stay silent. It ends
 * with the exchange.
 *
 * Several parts share the stream, so it closes only when none needs it any more: `finish` was called, no body streams
 * (`stream`/`streamed`), and no body with trailers to show is in progress (`hold`/`release`). `owe` counts the answers
 * that are due; a timer runs while there are any, and each message restarts it.
 */
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { MetadataSchema } from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import {
  ExternalProcessor,
  ProcessingRequestSchema,
  ProtocolConfigurationSchema,
  type ImmediateResponse,
  type ProcessingRequest,
  type ProcessingResponse,
  type ProtocolConfiguration,
} from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { CalloutError, type Callout, type CalloutSink, type CalloutStream } from "../../callouts/callout.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { override, wireMode, type Kind, type Modes } from "./modes.ts";

export type Part = NonNullable<MessageInitShape<typeof ProcessingRequestSchema>["request"]>;
export type AnswerCase = Exclude<ProcessingResponse["response"]["case"], undefined>;

/** Attributes and metadata sent with the first message about a request or a response. */
export interface Extras {
  readonly attributes: Record<string, JsonObject>;
  readonly metadata: Record<string, JsonObject> | undefined;
}

/** Receives every body piece that the processor sends for its side (full duplex). */
export interface Streamer {
  message(message: ProcessingResponse): void;
  drain(): void;
  /** Called when the stream ended: with undefined after a regular end, else with the error. */
  closed(error: Error | undefined): void;
}

interface Waiter {
  /** Called with undefined when the processor closed the stream regularly without an answer. */
  resolve(answer: ProcessingResponse | undefined): void;
  reject(error: Error): void;
}

export interface SessionOptions {
  readonly modes: Modes;
  readonly allowOverride: boolean;
  /** Receives the dynamic metadata of answers, which expressions see otherwise. */
  readonly onMetadata?: (metadata: JsonObject) => void;
}

/** Default limit for the silence of a processor that owes an answer, when its service sets no timeout. */
const SILENCE_MS = 5_000;

export class ProcSession implements CalloutSink<ProcessingResponse> {
  modes: Modes;
  /** True once bytes of a body were handed over: the original message is lost from then on. */
  handed = false;
  /** Resolves when the processor sends an immediate response. */
  readonly immediate: Promise<ImmediateResponse>;
  readonly #exchange: Exchange;
  readonly #allowOverride: boolean;
  readonly #onMetadata: ((metadata: JsonObject) => void) | undefined;
  readonly #stream: CalloutStream<ProcessingRequest>;
  readonly #waiters = new Map<AnswerCase, Waiter>();
  readonly #streamers = new Map<Kind, Streamer>();
  readonly #extras = new Map<Kind, Extras>();
  readonly #onImmediate: (response: ImmediateResponse) => void;
  #first = true;
  #owed = 0;
  #held = 0;
  #finishing = false;
  #timer: NodeJS.Timeout | undefined;
  #over = false;
  #end: Error | undefined;

  /** @throws CalloutError */
  constructor(service: Callout, exchange: Exchange, options: SessionOptions) {
    const { promise, resolve } = Promise.withResolvers<ImmediateResponse>();
    this.immediate = promise;
    this.#onImmediate = resolve;
    this.modes = options.modes;
    this.#allowOverride = options.allowOverride;
    this.#onMetadata = options.onMetadata;
    this.#exchange = exchange;
    this.#stream = service.stream(ExternalProcessor.method.process, this, exchange);
  }

  /** True once the stream has ended, regularly or not. */
  get over(): boolean {
    return this.#over;
  }

  /** Sets what is sent with the first message about this side. */
  accompany(kind: Kind, extras: Extras): void {
    this.#extras.set(kind, extras);
  }

  connected(): Promise<void> {
    return this.#stream.connected();
  }

  /** @returns false to wait for `drain` */
  send(kind: Kind, request: Part): boolean {
    const message = create(ProcessingRequestSchema, { request });
    const extras = this.#extras.get(kind);
    this.#extras.delete(kind);
    if (extras !== undefined) {
      message.attributes = extras.attributes;
      if (extras.metadata !== undefined)
        message.metadataContext = create(MetadataSchema, { filterMetadata: extras.metadata });
    }
    if (this.#first) message.protocolConfig = this.#config();
    this.#first = false;
    return this.#stream.send(message);
  }

  #config(): ProtocolConfiguration {
    const { request, response } = this.modes;
    return create(ProtocolConfigurationSchema, {
      requestBodyMode: wireMode(request.body),
      responseBodyMode: wireMode(response.body),
    });
  }

  /**
   * Sends a part and waits for its answer.
   * @param patient true when the processor may wait for more parts before it answers
   * @returns undefined when the processor closed the stream regularly; an immediate response in place of the answer
   * @throws CalloutError, or the error that the exchange was aborted with
   */
  async ask(kind: Kind, request: Part, answer: AnswerCase, patient = false): Promise<ProcessingResponse | undefined> {
    if (this.#over) return this.#closing();
    const { promise, resolve, reject } = Promise.withResolvers<ProcessingResponse | undefined>();
    this.#waiters.set(answer, { resolve, reject });
    this.send(kind, request);
    if (!patient) this.owe(1);
    try {
      return await promise;
    } finally {
      if (!patient) this.owe(-1);
    }
  }

  stream(kind: Kind, streamer: Streamer): void {
    this.#streamers.set(kind, streamer);
  }

  streamed(kind: Kind): void {
    this.#streamers.delete(kind);
    this.#endIfDone();
  }

  /** Keeps the stream open for a body whose trailers may have to be shown, until `release`. */
  hold(): void {
    this.#held++;
  }

  release(): void {
    this.#held--;
    this.#endIfDone();
  }

  /** Counts the answers that the processor owes; while there are any, its silence is limited. */
  owe(change: 1 | -1): void {
    this.#owed += change;
    clearTimeout(this.#timer);
    if (this.#owed === 0 || this.#over) return;
    const giveUp = (): void => this.fail(new CalloutError("the processor does not answer"));
    this.#timer = setTimeout(giveUp, this.#stream.patienceMs ?? SILENCE_MS);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  fail(error: Error): void {
    this.#stream.cancel();
    this.close(error);
  }

  /** Closes the stream once the bodies in progress have finished. */
  finish(): void {
    this.#finishing = true;
    this.#endIfDone();
  }

  /** Called when the exchange is over. */
  cancel(): void {
    if (this.#over) return;
    // A processor that owes nothing ends the stream by itself, a moment after the client has its answer.
    if (this.#finishing) this.#stream.leave();
    else this.#stream.cancel();
    this.close(new CalloutError("the request is over"));
  }

  message(message: ProcessingResponse): void {
    this.#timer?.refresh();
    if (message.dynamicMetadata !== undefined) this.#keep(message.dynamicMetadata);
    const { case: name } = message.response;
    if (
      message.modeOverride !== undefined &&
      this.#allowOverride &&
      (name === "requestHeaders" || name === "responseHeaders")
    )
      this.modes = override(this.modes, message.modeOverride);
    if (message.response.case === "immediateResponse") this.#answerAtOnce(message, message.response.value);
    else if (name === undefined) this.fail(new CalloutError("the processor sent a message without an answer"));
    else this.#dispatch(name, message);
  }

  drain(): void {
    for (const streamer of this.#streamers.values()) streamer.drain();
  }

  close(error: Error | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#end = error;
    clearTimeout(this.#timer);
    for (const { resolve, reject } of this.#waiters.values()) {
      if (error === undefined) resolve(undefined);
      else reject(error);
    }
    this.#waiters.clear();
    for (const streamer of this.#streamers.values()) streamer.closed(error);
    this.#streamers.clear();
  }

  #endIfDone(): void {
    if (this.#finishing && !this.#over && this.#streamers.size === 0 && this.#held === 0) this.#stream.end();
  }

  #dispatch(name: AnswerCase, message: ProcessingResponse): void {
    const waiter = this.#waiters.get(name);
    const streamer = this.#streamers.get(name.startsWith("request") ? "request" : "response");
    if (waiter !== undefined) {
      this.#waiters.delete(name);
      waiter.resolve(message);
    } else if (streamer !== undefined && !name.endsWith("Headers")) streamer.message(message);
    else this.fail(new CalloutError(`the processor answers ${name}, which nobody asked for`));
  }

  #answerAtOnce(message: ProcessingResponse, response: ImmediateResponse): void {
    this.#onImmediate(response);
    for (const { resolve } of this.#waiters.values()) resolve(message);
    this.#waiters.clear();
    this.#stream.leave();
    this.close(new CalloutError("the processor answered the request itself"));
  }

  /** Merges metadata into the root "extproc"; later values replace earlier ones. */
  #keep(metadata: JsonObject): void {
    if (this.#onMetadata !== undefined) return this.#onMetadata(metadata);
    const known = this.#exchange.root("extproc");
    const before: Iterable<readonly [unknown, unknown]> = known instanceof Map ? known : [];
    this.#exchange.setRoot("extproc", new Map<unknown, unknown>([...before, ...Object.entries(metadata)]));
  }

  #closing(): undefined {
    if (this.#end !== undefined) throw this.#end;
    return undefined;
  }
}

/**
 * The one stream of a request to its external processor: who waits for which answer, and for how long. In: messages of
 * the processor. Out: answers to those who asked, pieces of bodies to those who stream. It ends with the exchange.
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
import type { Exchange } from "../../pipeline/exchange.ts";
import { override, wireMode, type Kind, type Modes } from "./modes.ts";

export type Part = NonNullable<MessageInitShape<typeof ProcessingRequestSchema>["request"]>;
export type AnswerCase = Exclude<ProcessingResponse["response"]["case"], undefined>;

/** What accompanies the first message about a request or a response. */
export interface Extras {
  readonly attributes: Record<string, JsonObject>;
  readonly metadata: Record<string, JsonObject> | undefined;
}

/** A body in full duplex: gets every piece that the processor sends for it. */
export interface Streamer {
  message(message: ProcessingResponse): void;
  drain(): void;
  /** The stream is over: in good order (undefined), or broken. */
  closed(error: Error | undefined): void;
}

interface Waiter {
  /** undefined: the processor closed the stream in good order and has nothing to say. */
  resolve(answer: ProcessingResponse | undefined): void;
  reject(error: Error): void;
}

/** A processor that owes an answer is given up after so long without a word, where its own settings say nothing. */
const SILENCE_MS = 5_000;

export class ProcSession implements CalloutSink<ProcessingResponse> {
  modes: Modes;
  /** Bytes of a body were handed over: the original message cannot be had any more. */
  handed = false;
  /** Set by an immediate response, at any time. */
  readonly immediate: Promise<ImmediateResponse>;
  readonly #exchange: Exchange;
  readonly #allowOverride: boolean;
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
  constructor(
    service: Callout,
    exchange: Exchange,
    options: { readonly modes: Modes; readonly allowOverride: boolean },
  ) {
    const { promise, resolve } = Promise.withResolvers<ImmediateResponse>();
    this.immediate = promise;
    this.#onImmediate = resolve;
    this.modes = options.modes;
    this.#allowOverride = options.allowOverride;
    this.#exchange = exchange;
    this.#stream = service.stream(ExternalProcessor.method.process, this, exchange);
  }

  /** The processor has gone, for good or for bad. */
  get over(): boolean {
    return this.#over;
  }

  /** Sent with the first message about this side. */
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
   * Sends a part and waits for the answer to it.
   * @param patient the processor may wait for more before it answers
   * @returns undefined when the processor closed the stream in good order; an immediate response instead of the answer
   * @throws CalloutError, or what the exchange was aborted with
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

  /** A body is on its way whose trailers may have to be shown: the stream stays until `release`. */
  hold(): void {
    this.#held++;
  }

  release(): void {
    this.#held--;
    this.#endIfDone();
  }

  /** Counts what the processor owes; while it is anything, its silence is limited. */
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

  /** Nothing more is wanted; bodies that are still on their way go on. */
  finish(): void {
    this.#finishing = true;
    this.#endIfDone();
  }

  /** The exchange is over. */
  cancel(): void {
    if (!this.#over) this.fail(new CalloutError("the request is over"));
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
    this.fail(new CalloutError("the processor answered the request itself"));
  }

  /** Later values replace earlier ones. */
  #keep(metadata: JsonObject): void {
    const known = this.#exchange.root("extproc");
    const before: Iterable<readonly [unknown, unknown]> = known instanceof Map ? known : [];
    this.#exchange.setRoot("extproc", new Map<unknown, unknown>([...before, ...Object.entries(metadata)]));
  }

  #closing(): undefined {
    if (this.#end !== undefined) throw this.#end;
    return undefined;
  }
}

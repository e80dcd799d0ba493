/**
 * Guards a session over WebSocket, realtime or Responses: request guards look at what the client sends, response guards
 * at what the provider says, in the windows of streamed answers. `operations/realtime.ts` puts it around the upgraded
 * connection of the provider where `promptGuard.streaming` is enabled.
 *
 *     client ──▶ message ──▶ request guards ──▶ provider      a rejected message is dropped
 *     client ◀── held ◀── windows, response guards ◀── provider      a rejected answer is dropped up to its end
 *
 * In both cases the client gets an event `error`. A message that a guard would mask is rejected; masks have no effect on
 * answers, as in streams.
 * A side that breaks the protocol gets a close frame that says why, and the other one a close frame as well.
 * Each message is printed anew from what was read, so that no second reading of the same bytes can hide a text. A
 * direction without guards is relayed byte for byte, and messages of the gateway are put between those of the other side.
 */
import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { HeaderList } from "../../../lib/header-list.ts";
import { ignore } from "../../../lib/ignore.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { parseObject, stringOf, type JsonObject } from "../shared/json.ts";
import { RelayedFrames } from "../stream/relayed-frames.ts";
import { TextMessages } from "../stream/text-messages.ts";
import {
  printClose,
  printEvent,
  printMessage,
  SessionReader,
  type CloseReason,
  type SessionFrame,
} from "../stream/web-socket.ts";
import type { GuardChain } from "./chain.ts";
import type { PromptGuards } from "./run.ts";
import { checkClientEvent } from "./session-request.ts";
import { SessionAnswers, type Released } from "./session-answers.ts";
import { blockedError } from "./text-windows.ts";

/** Longest message that is read; a longer one cannot be checked and is dropped. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
const GOING_AWAY: CloseReason = { code: 1001, reason: "" };
const INTERNAL_ERROR: CloseReason = { code: 1011, reason: "" };
const UNREADABLE = "The message cannot be checked: it is longer than 2 MiB or not a JSON object.";

export interface SessionContext {
  readonly guards: PromptGuards;
  readonly exchange: RoutedExchange;
  /** Headers of the provider's answer to the upgrade. */
  readonly headers: HeaderList;
  /** Whether it is a realtime session; otherwise one of Responses, where no event stops an answer. */
  readonly isRealtime: boolean;
  /** Is shown each message of the provider that can be read, checked or not. */
  onMessage(text: Buffer): void;
}

/** @param provider the upgraded connection, paused */
export function guardSession(provider: Duplex, context: SessionContext): Duplex {
  return new GuardedSession(provider, context);
}

type Message = Extract<SessionFrame, { kind: "message" }>;

/** The connection as the client sees it. */
class GuardedSession extends Duplex {
  readonly #provider: Duplex;
  readonly #context: SessionContext;
  readonly #toClient: RelayedFrames;
  readonly #toProvider: RelayedFrames;
  /** Take what the provider and the client send; the next bytes come when these are through. */
  readonly #receive: (chunk: Buffer) => Promise<void>;
  readonly #send: (chunk: Buffer) => Promise<void>;
  #answers: SessionAnswers | undefined;
  /** The last piece of work on what the provider sends; each begins when the one before has ended. */
  #received: Promise<void> = Promise.resolve();
  #waitingPieces = 0;
  #hasRoom = true;
  /** Waits for the client to read. */
  #onRoom: (() => void) | undefined;
  #providerHasEnded = false;
  /** Whether the last frame has gone to a side: it closes the session (RFC 6455 §5.5.1). */
  #isClientClosed = false;
  #isProviderClosed = false;
  /** Whether the gateway has ended the session. */
  #hasFailed = false;

  constructor(provider: Duplex, context: SessionContext) {
    super({ allowHalfOpen: true });
    this.#provider = provider;
    this.#context = context;
    this.#toClient = new RelayedFrames((bytes) => this.#deliver(bytes));
    this.#toProvider = new RelayedFrames((bytes) => this.#writeOn(bytes));
    this.#receive = this.#receiver(context);
    this.#send = this.#sender(context);
    // Each direction ends on its own, as the relay expects it of a socket.
    if (provider instanceof Socket) provider.allowHalfOpen = true;
    provider.on("data", (chunk: Buffer) => void this.#enqueue(() => this.#receive(chunk)));
    provider.pause();
    provider.on("end", () => {
      this.#providerHasEnded = true;
      void this.#enqueue(() => this.#finish());
    });
    provider.on("error", (error: Error) => this.destroy(error));
    provider.on("close", () => {
      if (!this.#providerHasEnded || this.readableEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  override _read(): void {
    this.#hasRoom = true;
    this.#onRoom?.();
    if (this.#waitingPieces === 0) this.#provider.resume();
  }

  /** Takes the next bytes of the client only when these have been checked, so that messages keep their order. */
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    void this.#take(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#provider.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#provider.destroy(error ?? undefined);
    this.#letGo();
    done(error);
  }

  /**
   * Works on what the provider has sent, a piece after the other, and reads nothing more until the last one is through.
   * A socket that is paused still reports its end, which must not overtake a check.
   */
  async #enqueue(work: () => Promise<void>): Promise<void> {
    this.#waitingPieces++;
    this.#provider.pause();
    const before = this.#received;
    const received = (async () => {
      await before;
      if (!this.destroyed && !this.#hasFailed) await work();
    })();
    // The next piece has nothing to do with what became of this one.
    this.#received = received.catch(ignore);
    try {
      await received;
    } catch {
      this.#fail(INTERNAL_ERROR, GOING_AWAY);
    }
    this.#waitingPieces--;
    if (this.#waitingPieces === 0 && this.#hasRoom && !this.destroyed) this.#provider.resume();
  }

  async #take(chunk: Buffer, done: () => void): Promise<void> {
    try {
      if (!this.#hasFailed) await this.#send(chunk);
    } catch {
      this.#fail(INTERNAL_ERROR, GOING_AWAY);
    }
    done();
  }

  #sender({ guards }: SessionContext): (chunk: Buffer) => Promise<void> {
    const chain = guards.request;
    if (chain === undefined)
      return async (chunk) => {
        this.#toProvider.push(chunk);
        await this.#drained();
      };
    const reader = new SessionReader(true, MAX_MESSAGE_BYTES);
    return async (chunk) => {
      for (const frame of reader.read(chunk)) {
        if (frame.kind === "violation") return this.#fail(frame, GOING_AWAY);
        if (frame.kind === "message") await this.#sendMessage(frame, chain);
        else this.#writeOn(frame.bytes);
        if (frame.kind === "control" && frame.isClose) this.#isProviderClosed = true;
        await this.#drained();
      }
    };
  }

  async #sendMessage({ isBinary, payload }: Message, chain: GuardChain): Promise<void> {
    const event = payload && parseObject(payload);
    if (event === undefined) return this.#refuse(UNREADABLE, {});
    const message = await checkClientEvent(event, chain, this.#context.exchange);
    if (message !== undefined) return this.#refuse(message, event);
    this.#writeOn(printMessage({ payload: Buffer.from(JSON.stringify(event)), isBinary }, true));
  }

  #writeOn(bytes: Buffer): void {
    if (!this.#isProviderClosed && this.#provider.writable) this.#provider.write(bytes);
  }

  /** Waits while the provider does not read, so that the client is slowed down. */
  async #drained(): Promise<void> {
    const provider = this.#provider;
    if (!provider.writableNeedDrain || provider.destroyed) return;
    await new Promise<void>((resolve) => {
      const resume = (): void => {
        provider.off("drain", resume);
        provider.off("close", resume);
        resolve();
      };
      provider.on("drain", resume);
      provider.on("close", resume);
    });
  }

  /** Answers a message of the client, and waits until it reads: it may send more than it reads otherwise. */
  async #refuse(message: string, { event_id, stream_id }: JsonObject): Promise<void> {
    await this.#tellClient(message, { event_id: stringOf(event_id), stream_id: stringOf(stream_id) });
    if (!this.#hasRoom && !this.#isClientClosed && !this.destroyed)
      await new Promise<void>((resolve) => (this.#onRoom = resolve));
  }

  /** @param refused names of the client's message that is refused, which JSON leaves out where there are none */
  async #tellClient(message: string, refused: { event_id?: string | undefined; stream_id?: string | undefined } = {}) {
    const { event_id, stream_id } = refused;
    const error = { ...blockedError(message), param: null, event_id };
    // Each event of a realtime service has an id.
    const id = this.#context.isRealtime ? `event_${randomUUID().replaceAll("-", "")}` : undefined;
    await this.#toClient.insert(printEvent({ type: "error", event_id: id, error, stream_id }, false));
  }

  #receiver({ guards, exchange, headers, isRealtime, onMessage }: SessionContext): (chunk: Buffer) => Promise<void> {
    if (guards.response === undefined) {
      const messages = new TextMessages(MAX_MESSAGE_BYTES, onMessage);
      return async (chunk) => {
        messages.push(chunk);
        this.#toClient.push(chunk);
      };
    }
    const reader = new SessionReader(false, MAX_MESSAGE_BYTES);
    const rules = { limitBytes: exchange.responseLimitBytes, errorEndsAnswer: !isRealtime };
    const answers = new SessionAnswers({ chain: guards.response, exchange, headers }, rules);
    this.#answers = answers;
    return async (chunk) => {
      for (const frame of reader.read(chunk))
        if (frame.kind === "violation") return this.#fail(INTERNAL_ERROR, frame);
        else if (frame.kind === "message") await this.#receiveMessage(frame, answers);
        else {
          if (frame.isClose) await this.#passOn(await answers.release());
          this.#deliver(frame.bytes);
          // Nothing may follow the end of the session.
          if (frame.isClose) this.#isClientClosed = true;
        }
    };
  }

  async #receiveMessage({ payload }: Message, answers: SessionAnswers): Promise<void> {
    if (payload !== undefined) this.#context.onMessage(payload);
    const event = payload && parseObject(payload);
    if (event === undefined) return this.#tellClient(UNREADABLE);
    await this.#passOn(await answers.take(event));
  }

  async #passOn({ events, rejection, streams = [], cancelled = [] }: Released): Promise<void> {
    if (rejection !== undefined) for (const stream_id of streams) await this.#tellClient(rejection, { stream_id });
    for (const event of events) this.#deliver(printMessage({ payload: Buffer.from(event), isBinary: false }, false));
    if (!this.#context.isRealtime) return;
    for (const response_id of cancelled)
      await this.#toProvider.insert(printEvent({ type: "response.cancel", response_id }, true));
  }

  #deliver(bytes: Buffer): void {
    if (!this.#isClientClosed && !this.destroyed && !this.push(bytes)) this.#hasRoom = false;
  }

  /** Ends the session with a close frame for each side. What is held was not checked, and is lost. */
  #fail(toClient: CloseReason, toProvider: CloseReason): void {
    if (this.#hasFailed || this.destroyed) return;
    this.#hasFailed = true;
    // A frame that would fall into a message is left out: that side only sees the end.
    void this.#toClient.insert(printClose(toClient, false));
    void this.#toProvider.insert(printClose(toProvider, true));
    this.#isClientClosed = true;
    this.#isProviderClosed = true;
    this.#letGo();
    this.push(null);
    // What the sides still say is read to its end and dropped.
    this.#hasRoom = true;
    this.#provider.end();
    this.#provider.resume();
  }

  async #finish(): Promise<void> {
    if (this.#answers !== undefined) await this.#passOn(await this.#answers.release());
    this.#isClientClosed = true;
    this.#letGo();
    if (!this.destroyed) this.push(null);
  }

  /** Ends what waits for a side that is gone. */
  #letGo(): void {
    this.#onRoom?.();
    this.#toClient.end();
    this.#toProvider.end();
  }
}

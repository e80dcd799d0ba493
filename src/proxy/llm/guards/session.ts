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
 * Each message is printed anew from what was read, so that no second reading of the same bytes can hide a text.
 */
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { parseObject, stringOf } from "../shared/json.ts";
import { printEvent, printMessage, SessionReader, type SessionFrame } from "../stream/web-socket.ts";
import type { PromptGuards } from "./run.ts";
import { checkClientEvent } from "./session-request.ts";
import { SessionAnswers } from "./session-answers.ts";
import { blockedError } from "./text-windows.ts";

/** Longest message that is read; a longer one cannot be checked and is dropped. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
const UNREADABLE = "The message cannot be checked: it is longer than 2 MiB or not a JSON object.";

export interface SessionContext {
  readonly guards: PromptGuards;
  readonly exchange: RoutedExchange;
  /** Headers of the provider's answer to the upgrade. */
  readonly headers: HeaderList;
  /** Whether the provider stops an answer when it is told `response.cancel`. */
  readonly canCancel: boolean;
  /** Is shown each message of the provider, checked or not. */
  onMessage(text: Buffer): void;
}

/** @param provider the upgraded connection, paused */
export function guardSession(provider: Duplex, context: SessionContext): Duplex {
  return new GuardedSession(provider, context);
}

/** The connection as the client sees it. */
class GuardedSession extends Duplex {
  readonly #provider: Duplex;
  readonly #context: SessionContext;
  readonly #fromClient: SessionReader = new SessionReader(true, MAX_MESSAGE_BYTES);
  readonly #fromProvider: SessionReader = new SessionReader(false, MAX_MESSAGE_BYTES);
  readonly #answers: SessionAnswers | undefined;
  #hasRoom = true;
  #isChecking = false;
  #providerHasEnded = false;
  /** Whether the client has been told the end. */
  #hasNoMore = false;

  constructor(provider: Duplex, context: SessionContext) {
    super({ allowHalfOpen: true });
    this.#provider = provider;
    this.#context = context;
    const { guards, exchange, headers } = context;
    if (guards.response !== undefined)
      this.#answers = new SessionAnswers({ chain: guards.response, exchange, headers }, exchange.responseLimitBytes);
    // Each direction ends on its own, as the relay expects it of a socket.
    if (provider instanceof Socket) provider.allowHalfOpen = true;
    provider.on("data", (chunk: Buffer) => void this.#runChecks(() => this.#receive(chunk)));
    provider.pause();
    provider.on("end", () => {
      this.#providerHasEnded = true;
      void this.#runChecks(() => this.#finish());
    });
    provider.on("error", (error: Error) => this.destroy(error));
    provider.on("close", () => {
      if (!this.#providerHasEnded || this.readableEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  override _read(): void {
    this.#hasRoom = true;
    if (!this.#isChecking) this.#provider.resume();
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
    done(error);
  }

  /** Reads nothing more of the provider until the checks have ended. */
  async #runChecks(checks: () => Promise<void>): Promise<void> {
    this.#isChecking = true;
    this.#provider.pause();
    try {
      await checks();
    } catch (error) {
      this.destroy(asError(error));
      return;
    }
    this.#isChecking = false;
    if (this.#hasRoom && !this.destroyed) this.#provider.resume();
  }

  async #take(chunk: Buffer, done: (error?: Error) => void): Promise<void> {
    try {
      await this.#send(chunk);
    } catch (error) {
      done(asError(error));
      return;
    }
    done();
  }

  async #send(chunk: Buffer): Promise<void> {
    for (const frame of this.#fromClient.read(chunk))
      if (frame.kind === "control") await this.#writeOn(frame.bytes);
      else await this.#sendMessage(frame);
  }

  async #sendMessage({ isBinary, payload }: Extract<SessionFrame, { kind: "message" }>): Promise<void> {
    const event = payload && parseObject(payload);
    if (event === undefined) return this.#refuse(UNREADABLE, undefined);
    const { guards, exchange } = this.#context;
    const message = guards.request && (await checkClientEvent(event, guards.request, exchange));
    if (message !== undefined) return this.#refuse(message, stringOf(event["event_id"]));
    await this.#writeOn(printMessage({ payload: Buffer.from(JSON.stringify(event)), isBinary }, true));
  }

  /** Waits while the provider does not read, so that the client is slowed down. */
  async #writeOn(bytes: Buffer): Promise<void> {
    if (this.#provider.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const resume = (): void => {
        this.#provider.off("drain", resume);
        this.#provider.off("close", resume);
        resolve();
      };
      this.#provider.on("drain", resume);
      this.#provider.on("close", resume);
    });
  }

  #refuse(message: string, eventId: string | undefined): void {
    const error = { ...blockedError(message), param: null, ...(eventId === undefined ? {} : { event_id: eventId }) };
    this.#deliver(printEvent({ type: "error", error }, false));
  }

  async #receive(chunk: Buffer): Promise<void> {
    for (const frame of this.#fromProvider.read(chunk))
      if (frame.kind === "message") await this.#receiveMessage(frame);
      else {
        // Nothing may follow the end of the session.
        if (frame.isClose) await this.#release();
        this.#deliver(frame.bytes);
      }
  }

  async #receiveMessage({ isBinary, payload }: Extract<SessionFrame, { kind: "message" }>): Promise<void> {
    if (payload !== undefined) this.#context.onMessage(payload);
    if (this.#answers === undefined && payload !== undefined)
      return this.#deliver(printMessage({ payload, isBinary }, false));
    const event = payload && parseObject(payload);
    if (this.#answers === undefined || event === undefined) return this.#refuse(UNREADABLE, undefined);
    this.#passOn(await this.#answers.take(event));
  }

  async #release(): Promise<void> {
    if (this.#answers !== undefined) this.#passOn(await this.#answers.release());
  }

  #passOn({ events, blocked }: Awaited<ReturnType<SessionAnswers["take"]>>): void {
    if (blocked !== undefined) this.#refuse(blocked.message, undefined);
    for (const event of events) this.#deliver(printEvent(event, false));
    if (blocked === undefined || !this.#context.canCancel || blocked.responseId === undefined) return;
    this.#provider.write(printEvent({ type: "response.cancel", response_id: blocked.responseId }, true));
  }

  #deliver(bytes: Buffer): void {
    if (!this.#hasNoMore && !this.destroyed && !this.push(bytes)) this.#hasRoom = false;
  }

  async #finish(): Promise<void> {
    await this.#release();
    this.#hasNoMore = true;
    if (!this.destroyed) this.push(null);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

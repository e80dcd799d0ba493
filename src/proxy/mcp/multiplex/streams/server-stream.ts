/**
 * The stream of messages that targets send on their own (GET, versions up to 2025-11-25): those of all targets merged. A
 * target whose stream ends is asked for another one, so that the client need not reconnect and miss what other targets
 * say meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { RoutedExchange } from "../../../exchange/exchange.ts";
import { ERROR_CODES, McpError } from "../../mcp-error.ts";
import type { Message } from "../../message/message.ts";
import type { Session } from "../../session/session.ts";
import type { McpAnswer, Target } from "../../targets/target.ts";
import { streamOf } from "../answers.ts";
import { compareRosters, listChanges, type OpenStream } from "./open-streams.ts";
import { viewInterim, viewOf, type Server } from "../server.ts";
import { StreamMerger } from "./stream-merger.ts";

/** A target that refuses further streams so often in a row is given up. */
const MAX_FAILURES = 5;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
const NOT_OFFERED = 405;

/**
 * Opens the streams of all targets and answers with the first, since a server may send no head before its first message.
 * Others join when they come.
 * @throws McpError, ProxyError
 */
export async function openServerStream(server: Server, session: Session, exchange: RoutedExchange): Promise<McpAnswer> {
  const { naming, failOpen } = server;
  if (naming.targets.length === 0 && !failOpen)
    throw new McpError(ERROR_CODES.internal, "no server is available", { status: 503 });
  const stream = new ServerStream(server, session, exchange);
  const opening = new Opening(stream, failOpen);
  const all = Promise.all(naming.targets.map((target) => opening.open(target, target.listen(session, exchange))));
  await Promise.race([opening.first, all]);
  const { refused, failure, serious } = opening;
  const isOffered = refused.length < naming.targets.length || naming.targets.length === 0;
  const answer = (failOpen ? undefined : serious) ?? (isOffered ? undefined : refused[0]);
  if (answer === undefined && (failOpen || failure === undefined))
    return streamOf(stream.messages(), () => stream.close());
  stream.close();
  if (answer === undefined) throw failure;
  return answer;
}

/** How the targets have answered so far. */
class Opening {
  readonly refused: McpAnswer[] = [];
  failure: unknown;
  /** A refusal other than that of a target which offers no stream. */
  serious: McpAnswer | undefined;
  readonly #first: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #stream: ServerStream;
  readonly #failOpen: boolean;

  constructor(stream: ServerStream, failOpen: boolean) {
    this.#stream = stream;
    this.#failOpen = failOpen;
  }

  /** Resolves when the client can be answered: a stream is open, or will not be. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  async open(target: Target, listening: Promise<McpAnswer>): Promise<void> {
    try {
      const answer = await listening;
      if (answer.body === undefined) {
        this.#stream.add(target, answer);
        this.#first.resolve();
        return;
      }
      this.refused.push(answer);
      if (answer.status === NOT_OFFERED) return;
      this.serious ??= answer;
    } catch (error) {
      this.failure ??= error;
    }
    if (this.#failOpen) return;
    this.#first.resolve();
    // The client may have been answered already: its stream then ends, as that of the target has not begun.
    this.#stream.close();
  }
}

class ServerStream implements OpenStream<Server> {
  #server: Server;
  readonly #session: Session;
  readonly #exchange: RoutedExchange;
  /** Sources are names: a change of the backend makes new targets of the same name. */
  readonly #merger = new StreamMerger<string>(true);
  /** Targets that are asked for another stream. */
  readonly #reopening = new Set<string>();
  /** Times to wait before that, by target. */
  readonly #delays = new Map<string, ReopenDelay>();
  #isClosed = false;

  constructor(server: Server, session: Session, exchange: RoutedExchange) {
    this.#server = server;
    this.#session = session;
    this.#exchange = exchange;
    server.streams.add(this);
  }

  add({ name }: Target, answer: McpAnswer): void {
    this.#delayOf(name).begin();
    this.#merger.add(name, answer);
  }

  close(): void {
    this.#isClosed = true;
    this.#server.streams.remove(this);
    this.#merger.close();
  }

  adopt(server: Server): void {
    const change = compareRosters(this.#server.naming, server.naming);
    this.#server = server;
    if (change === undefined) return;
    for (const name of change.gone) {
      this.#merger.remove(name);
      this.#delays.delete(name);
    }
    for (const message of listChanges()) this.#merger.inject("", message);
    for (const name of change.came) this.#startReopening(name, 0);
  }

  async *messages(): AsyncGenerator<Message> {
    try {
      for (let arrival = await this.#merger.next(); arrival !== undefined; arrival = await this.#merger.next()) {
        if (arrival.kind === "own") yield arrival.message;
        else if (arrival.kind === "message") {
          this.#delayOf(arrival.source).reset();
          const seen = this.#view(arrival.source, arrival.message);
          if (seen !== undefined) yield seen;
        } else this.#startReopening(arrival.source, this.#delayOf(arrival.source).next());
      }
    } finally {
      this.close();
    }
  }

  #view(name: string, message: Message): Message | undefined {
    const target = this.#server.naming.find(name);
    if (target === undefined) return undefined;
    const view = viewOf(this.#server, { exchange: this.#exchange, isModern: false });
    return viewInterim(this.#server, message, target, { view, session: this.#session });
  }

  #delayOf(name: string): ReopenDelay {
    let delay = this.#delays.get(name);
    if (delay === undefined) this.#delays.set(name, (delay = new ReopenDelay()));
    return delay;
  }

  #startReopening(name: string, waitMs: number): void {
    if (this.#reopening.has(name)) return;
    this.#reopening.add(name);
    void this.#reopen(name, waitMs).finally(() => this.#reopening.delete(name));
  }

  /** Without one of its targets the stream is not what the client asked for: with FailClosed it ends. */
  async #reopen(name: string, firstWaitMs: number): Promise<void> {
    let waitMs = firstWaitMs;
    for (let failures = 0; failures < MAX_FAILURES; failures++) {
      if (waitMs > 0) await sleep(waitMs, undefined, { ref: false });
      const target = this.#server.naming.find(name);
      if (this.#isClosed || target === undefined || this.#merger.has(name)) return;
      const answer = await this.#listen(target);
      if (answer?.body === undefined && answer !== undefined) return this.add(target, answer);
      if (answer?.status === NOT_OFFERED) return;
      waitMs = this.#delayOf(name).next();
    }
    if (!this.#server.failOpen) this.close();
  }

  async #listen(target: Target): Promise<McpAnswer | undefined> {
    try {
      return await target.listen(this.#session, this.#exchange);
    } catch {
      // It counts as a failure; the target's own span and log line say why.
      return undefined;
    }
  }
}

/**
 * How long a target is left alone before it is asked for another stream. One that ends its streams as soon as they are
 * open is asked less and less often. A message, or a stream that lasted, shows that its streams are of use.
 */
class ReopenDelay {
  #waitMs = FIRST_WAIT_MS;
  #begunAtMs = Infinity;

  /** A stream has been opened. */
  begin(): void {
    this.#begunAtMs = performance.now();
  }

  reset(): void {
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Returns the time to wait now that a stream has ended or was refused. */
  next(): number {
    if (performance.now() - this.#begunAtMs > MAX_WAIT_MS) this.reset();
    this.#begunAtMs = Infinity;
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(MAX_WAIT_MS, waitMs * 2);
    return waitMs;
  }
}

/**
 * Requests between the threads of a replica about open streams, the only part of a session that one thread has for
 * itself: an id names, under its seal, the thread that holds the stream. A worker hands requests to the main thread,
 * which passes them on (`src/proxy/workers`); in a process of one thread every request is its own.
 */
import type { SessionOwner } from "./sessions.ts";

/** Requests by name. Bodies and answers are plain data, as they may travel between threads. */
export interface ThreadProtocol {
  /** Looks for the stream of a client, as one of its messages has arrived. */
  readonly findClient: { readonly ask: ClientKey & { readonly owner: SessionOwner }; readonly answer: FoundClient };
  /** Sends a message to a client; answers when there is room for more, with false when the stream is over. */
  readonly tellClient: { readonly ask: ClientKey & { readonly bytes: Uint8Array }; readonly answer: boolean };
  /** Notes the session of a client that has initialised, which ends with the stream; false when that is over. */
  readonly enterClient: { readonly ask: ClientKey & { readonly session: string }; readonly answer: boolean };
  /** Begins to send what targets say on their own. */
  readonly listenForClient: { readonly ask: ClientKey; readonly answer: undefined };
  /** Looks for the stream to a target. */
  readonly findTarget: { readonly ask: TargetKey; readonly answer: boolean };
  /** Begins to read a stream to a target: the response to a request, or what the target says on its own. */
  readonly readTarget: {
    readonly ask: TargetKey & { readonly id: string | undefined };
    readonly answer: TargetReader;
  };
  /** Waits for the next message of a reader. */
  readonly nextOfTarget: { readonly ask: number; readonly answer: TargetMessageAnswer };
  readonly leaveTarget: { readonly ask: number; readonly answer: undefined };
  readonly closeTarget: { readonly ask: string; readonly answer: undefined };
}

interface TargetKey {
  readonly key: string;
  /** Endpoint and path that the stream must be from. */
  readonly place: string;
}

/** What begins to be read; without a number nothing is, because the stream is over or refuses to. */
export interface TargetReader {
  readonly reader: number | undefined;
  readonly refusal: string | undefined;
}

/** The bytes of a message; without them nothing more comes. */
export interface TargetMessageAnswer {
  readonly bytes: Uint8Array | undefined;
  readonly failure: string | undefined;
}

interface ClientKey {
  readonly key: string;
}

interface FoundClient {
  /** Id of the session; undefined before `initialize`. */
  readonly session: string | undefined;
}

/** A request on its way. */
export interface ThreadRequest {
  readonly name: keyof ThreadProtocol;
  readonly body: unknown;
}

type Handler<K extends keyof ThreadProtocol> = (
  body: ThreadProtocol[K]["ask"],
) => ThreadProtocol[K]["answer"] | undefined | Promise<ThreadProtocol[K]["answer"] | undefined>;

export class Threads {
  /** Number of this thread. */
  readonly own: number;
  readonly #askOther: (thread: number, request: ThreadRequest) => Promise<unknown>;
  readonly #handlers = new Map<keyof ThreadProtocol, (body: never) => unknown>();

  /** @param askOther reaches another thread; it rejects when there is none of this number */
  constructor(
    own = 0,
    askOther: (thread: number, request: ThreadRequest) => Promise<unknown> = () =>
      Promise.reject(new Error("there is one thread")),
  ) {
    this.own = own;
    this.#askOther = askOther;
  }

  serve<K extends keyof ThreadProtocol>(name: K, handler: Handler<K>): void {
    this.#handlers.set(name, handler);
  }

  /** @returns undefined also when the thread has ended: what it held is gone then */
  async ask<K extends keyof ThreadProtocol>(
    thread: number,
    name: K,
    body: ThreadProtocol[K]["ask"],
  ): Promise<ThreadProtocol[K]["answer"] | undefined> {
    const request = { name, body };
    const answer = thread === this.own ? this.answer(request) : this.#askOther(thread, request);
    // The handler of the same name has made the answer.
    return (await answer.catch(() => undefined)) as ThreadProtocol[K]["answer"] | undefined;
  }

  /** Answers a request of this thread or another one. */
  async answer({ name, body }: ThreadRequest): Promise<unknown> {
    // All threads are compiled against the same protocol, so the body is that of the name.
    return this.#handlers.get(name)?.(body as never);
  }
}

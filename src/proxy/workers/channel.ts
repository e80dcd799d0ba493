/**
 * Request and response between two threads over one MessagePort, in both directions; WorkerThread and the worker's
 * entry hold the two ends. Each side numbers its own requests, and a response carries the number of its request.
 */
import type { MessagePort, Worker } from "node:worker_threads";
import { messageOf } from "../../lib/errors.ts";

/** The requests that a side handles, with the types of request and response body by name. */
type Protocol<P> = { readonly [K in keyof P]: { readonly ask: unknown; readonly answer: unknown } };

export type Handlers<P extends Protocol<P>> = {
  readonly [K in keyof P]: (body: P[K]["ask"]) => P[K]["answer"] | Promise<P[K]["answer"]>;
};

type Message =
  | { readonly kind: "ask"; readonly id: number; readonly name: string; readonly body: unknown }
  | { readonly kind: "answer"; readonly id: number; readonly body: unknown }
  | { readonly kind: "error"; readonly id: number; readonly reason: string };

export class Channel<Theirs extends Protocol<Theirs>, Ours extends Protocol<Ours>> {
  readonly #port: MessagePort | Worker;
  readonly #handlers: Handlers<Ours>;
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>();
  #last = 0;
  #ended: string | undefined;

  constructor(port: MessagePort | Worker, handlers: Handlers<Ours>) {
    this.#port = port;
    this.#handlers = handlers;
    port.on("message", (message: Message) => this.#receive(message));
  }

  /** Sends a request. Rejects with the reason that the other side gives, or with that of `end`. */
  ask<K extends keyof Theirs & string>(name: K, body: Theirs[K]["ask"]): Promise<Theirs[K]["answer"]> {
    const question = Promise.withResolvers<unknown>();
    if (this.#ended !== undefined) return Promise.reject(new Error(this.#ended));
    const id = ++this.#last;
    this.#open.set(id, question);
    this.#send({ kind: "ask", id, name, body });
    // The handler of the same name produces the response, so it has this type.
    return question.promise as Promise<Theirs[K]["answer"]>;
  }

  /** Rejects open and later requests after the other side has ended; without it they would stay pending forever. */
  end(reason: string): void {
    this.#ended = reason;
    for (const question of this.#open.values()) question.reject(new Error(reason));
    this.#open.clear();
  }

  #receive(message: Message): void {
    if (message.kind === "ask") {
      // Both sides are compiled against the same protocol, so the name is one of ours.
      void this.#answer(message.id, message.name as keyof Ours, message.body);
      return;
    }
    const question = this.#open.get(message.id);
    this.#open.delete(message.id);
    if (message.kind === "answer") question?.resolve(message.body);
    else question?.reject(new Error(message.reason));
  }

  async #answer(id: number, name: keyof Ours, body: unknown): Promise<void> {
    try {
      // The same holds for the body.
      this.#send({ kind: "answer", id, body: await this.#handlers[name]?.(body as Ours[keyof Ours]["ask"]) });
    } catch (error) {
      this.#send({ kind: "error", id, reason: messageOf(error) });
    }
  }

  #send(message: Message): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#port.postMessage(message);
  }
}

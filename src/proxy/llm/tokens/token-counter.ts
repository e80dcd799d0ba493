/**
 * Counts the tokens of prompts on a thread of its own: loading an encoding takes a tenth of a second, and a long prompt as
 * much again, and the event loop must not wait for either. The thread starts with the first count and ends when there
 * was none for a while, because it holds tens of megabytes.
 *
 * A count never fails. Where too many wait, one takes too long, or the thread dies, the tokens are estimated.
 */
import { Worker } from "node:worker_threads";
import { estimateTokens } from "./count-tokens.ts";
import { encodingOf } from "./encoding.ts";
import type { CountAnswer, CountQuestion } from "./token-worker.ts";

const MAX_WAITING = 64;
const MAX_WAIT_MS = 5000;
const MAX_IDLE_MS = 60_000;

interface TokenCounterLimits {
  /** Counts that may wait at once. */
  readonly maxWaiting?: number;
  /** How long a count may take, the start of the thread included. */
  readonly maxWaitMs?: number;
  /** How long the thread is kept without a count. */
  readonly maxIdleMs?: number;
}

export class TokenCounter {
  readonly #waiting = new Map<number, (tokens: number | undefined) => void>();
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #maxIdleMs: number;
  #worker: Worker | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #lastId = 0;

  constructor({ maxWaiting = MAX_WAITING, maxWaitMs = MAX_WAIT_MS, maxIdleMs = MAX_IDLE_MS }: TokenCounterLimits = {}) {
    this.#maxWaiting = maxWaiting;
    this.#maxWaitMs = maxWaitMs;
    this.#maxIdleMs = maxIdleMs;
  }

  /** Whether the thread runs. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Returns the tokens of texts for a model, without what joins the texts in a prompt. */
  async count(texts: readonly string[], model: string): Promise<number> {
    const tokens = await this.#ask(texts, model);
    return tokens ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  }

  #ask(texts: readonly string[], model: string): Promise<number | undefined> {
    if (this.#waiting.size >= this.#maxWaiting) return Promise.resolve(undefined);
    clearTimeout(this.#idleTimer);
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const id = ++this.#lastId;
    const timer = setTimeout(() => this.#settle(id, undefined), this.#maxWaitMs);
    this.#waiting.set(id, (tokens) => {
      clearTimeout(timer);
      resolve(tokens);
    });
    const question: CountQuestion = { id, texts, encoding: encodingOf(model) };
    this.#worker ??= this.#start();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(question);
    return promise;
  }

  #start(): Worker {
    // Use the extension of this file: sources run as .ts, and the package holds compiled .js files.
    const worker = new Worker(new URL(`./token-worker${import.meta.url.slice(-3)}`, import.meta.url), {
      name: "gwproxy-tokens",
    });
    worker.on("message", ({ id, tokens }: CountAnswer) => this.#settle(id, tokens));
    // An error of the thread ends it; a later count starts another one.
    worker.on("error", () => undefined);
    worker.on("exit", () => this.#lost(worker));
    // A listener for messages holds the process again, so this comes last.
    worker.unref();
    return worker;
  }

  #settle(id: number, tokens: number | undefined): void {
    this.#waiting.get(id)?.(tokens);
    this.#waiting.delete(id);
    if (this.#waiting.size > 0) return;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#stop(), this.#maxIdleMs).unref();
  }

  #stop(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
  }

  #lost(worker: Worker): void {
    // A thread that was stopped has nothing to answer, and another one may have taken its place.
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const id of this.#waiting.keys()) this.#settle(id, undefined);
  }
}

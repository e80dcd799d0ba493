/**
 * Answers reviews on threads of their own. A new object of 1.5 MB takes a tenth of a second to check, and whoever may write
 * objects decides what they hold: the event loop of the webhook must stay free for health checks and other reviews. A review
 * that takes too long costs its thread, and never more than that.
 */
import { Worker } from "node:worker_threads";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type ReviewAnswer, unanswerable } from "./answer.ts";

export interface ReviewThreads {
  /** The bytes are handed over: the caller must not use them any more. */
  review(body: Uint8Array<ArrayBuffer>): Promise<ReviewAnswer>;
  close(): Promise<void>;
}

export interface ReviewThreadsOptions {
  readonly log: Logger;
  /** The second thread starts when two reviews wait, so that one heavy object does not hold up all others. */
  readonly maxThreads?: number;
  /** Reviews that may wait for a thread. */
  readonly maxWaiting?: number;
  /** From the arrival of the body. The API server waits five seconds (webhook-configuration.ts). */
  readonly timeoutMs?: number;
  /** What a thread runs; for tests. */
  readonly entry?: URL;
  readonly workerData?: unknown;
}

interface Job {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly settle: (answer: ReviewAnswer) => void;
}

interface Thread {
  readonly worker: Worker;
  job: Job | undefined;
}

const MAX_THREADS = 2;
const MAX_WAITING = 64;
const TIMEOUT_MS = 4_500;
/** Of one thread. A review of the largest size takes a fraction; what takes more ends its thread and not the process. */
const MAX_HEAP_MB = 256;

/** Resolves when the first thread is ready. @throws when it cannot start */
export async function startReviewThreads(options: ReviewThreadsOptions): Promise<ReviewThreads> {
  const threads = new Threads(options);
  await threads.ready();
  return threads;
}

class Threads implements ReviewThreads {
  readonly #options: ReviewThreadsOptions;
  readonly #maxThreads: number;
  readonly #waiting: Job[] = [];
  readonly #threads = new Set<Thread>();
  #isClosed = false;

  constructor(options: ReviewThreadsOptions) {
    this.#options = options;
    this.#maxThreads = options.maxThreads ?? MAX_THREADS;
  }

  async ready(): Promise<void> {
    const { worker } = this.#start();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    worker.once("message", () => resolve());
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the thread ended with ${code}`)));
    await promise;
  }

  review(body: Uint8Array<ArrayBuffer>): Promise<ReviewAnswer> {
    const { maxWaiting = MAX_WAITING, timeoutMs = TIMEOUT_MS } = this.#options;
    if (this.#isClosed) return Promise.resolve(unanswerable(503, "the webhook is stopping"));
    if (this.#waiting.length >= maxWaiting) return Promise.resolve(unanswerable(503, "too many reviews are waiting"));
    const { promise, resolve } = Promise.withResolvers<ReviewAnswer>();
    const job: Job = { body, settle: resolve };
    const timer = setTimeout(() => this.#giveUp(job), timeoutMs);
    this.#waiting.push(job);
    this.#assign();
    return promise.finally(() => clearTimeout(timer));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#waiting.splice(0)) job.settle(unanswerable(503, "the webhook is stopping"));
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()));
  }

  #assign(): void {
    if (this.#isClosed) return;
    for (const thread of this.#threads) if (thread.job === undefined) this.#give(thread);
    if (this.#waiting.length > 0 && this.#threads.size < this.#maxThreads) this.#give(this.#start());
  }

  #give(thread: Thread): void {
    const job = this.#waiting.shift();
    if (job === undefined) return;
    thread.job = job;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.worker.postMessage(job.body, [job.body.buffer]);
  }

  #start(): Thread {
    const { log, workerData } = this.#options;
    // The extension is that of this file: sources run as they are, and the package holds compiled ones.
    const entry = this.#options.entry ?? new URL(`./review-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(entry, {
      name: "gwproxy-review",
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    const thread: Thread = { worker, job: undefined };
    this.#threads.add(thread);
    worker.on("message", (answer: ReviewAnswer | "ready") => {
      if (answer === "ready") return;
      thread.job?.settle(answer);
      thread.job = undefined;
      this.#assign();
    });
    worker.on("error", (error) => log.error("review thread failed", { error: messageOf(error) }));
    worker.on("exit", () => this.#lost(thread));
    return thread;
  }

  #lost(thread: Thread): void {
    this.#threads.delete(thread);
    thread.job?.settle(unanswerable(500, "the object could not be checked", "its thread ended"));
    thread.job = undefined;
    this.#assign();
  }

  /** The API server has given up on it, or is about to. */
  #giveUp(job: Job): void {
    const reason = `no verdict within ${this.#options.timeoutMs ?? TIMEOUT_MS} ms`;
    const at = this.#waiting.indexOf(job);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      job.settle(unanswerable(503, "too many reviews are waiting", reason));
      return;
    }
    for (const thread of this.#threads) {
      if (thread.job !== job) continue;
      thread.job = undefined;
      this.#threads.delete(thread);
      job.settle(unanswerable(500, "the object could not be checked in time", reason));
      void thread.worker.terminate();
      this.#assign();
    }
  }
}

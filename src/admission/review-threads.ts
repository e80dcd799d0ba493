/**
 * Answers reviews on worker threads; the webhook server uses it. Checking a new object of 1.5 MB takes a tenth of a
 * second, and every client that may write objects decides what they contain, so the event loop must stay free for
 * health checks and other reviews. A review that takes too long costs its thread and nothing else.
 *
 *   review(body) ──▶ waiting (at most 64; beyond that 503) ──▶ idle thread, or a second one ──▶ answer
 *                      └─ 4.5 s: 503                              └─ 4.5 s: 500 and the thread is terminated
 *
 * A thread that exits, by timeout, by an error or because its heap is full, settles its job, and the next waiting
 * review starts a new thread.
 */
import { Worker } from "node:worker_threads";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type ReviewAnswer, unanswerable } from "./answer.ts";

export interface ReviewThreads {
  /** Answers a review. The bytes are transferred to a thread, so the caller must not use them any more. */
  review(body: Uint8Array<ArrayBuffer>): Promise<ReviewAnswer>;
  close(): Promise<void>;
}

export interface ReviewThreadsOptions {
  readonly log: Logger;
  /**
   * Limit of threads. A second one starts when a review has to wait, so that one heavy object does not delay all
   * others.
   */
  readonly maxThreads?: number;
  /** Limit of reviews that wait for a thread. */
  readonly maxWaiting?: number;
  /** Time limit from the arrival of the body. The API server waits five seconds (webhook-configuration.ts). */
  readonly timeoutMs?: number;
  /** Module that a thread runs; replaced in tests. */
  readonly entry?: URL;
  readonly workerData?: unknown;
}

interface Job {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly settle: (answer: ReviewAnswer) => void;
}

interface Thread {
  readonly worker: Worker;
  /** A thread takes jobs once it has loaded the validators; until then they wait for whichever thread is free first. */
  isReady: boolean;
  job: Job | undefined;
}

const MAX_THREADS = 2;
const MAX_WAITING = 64;
const TIMEOUT_MS = 4_500;
/**
 * Heap limit of one thread. A review of the largest size takes a fraction of it; exceeding it ends the thread, not the
 * process.
 */
const MAX_HEAP_MB = 256;

/**
 * Resolves when the first thread is ready.
 * @throws when it cannot start
 */
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
    for (const thread of this.#threads) if (thread.isReady && thread.job === undefined) this.#give(thread);
    const isStarting = [...this.#threads].some(({ isReady }) => !isReady);
    if (this.#waiting.length > 0 && !isStarting && this.#threads.size < this.#maxThreads) this.#start();
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
    // The worker has the extension of this file: .ts when run from source, .js in the package.
    const entry = this.#options.entry ?? new URL(`./review-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(entry, {
      name: "gwproxy-review",
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    const thread: Thread = { worker, isReady: false, job: undefined };
    this.#threads.add(thread);
    worker.on("message", (answer: ReviewAnswer | "ready") => {
      if (answer === "ready") thread.isReady = true;
      else {
        thread.job?.settle(answer);
        thread.job = undefined;
      }
      this.#assign();
    });
    worker.on("error", (error) => log.error("review thread failed", { error: messageOf(error) }));
    worker.on("exit", () => this.#lost(thread));
    return thread;
  }

  #lost(thread: Thread): void {
    this.#threads.delete(thread);
    // A thread that ends before it is ready costs one review, so that threads which cannot start are not started for
    // ever.
    const job = thread.isReady ? thread.job : this.#waiting.shift();
    job?.settle(unanswerable(500, "the object could not be checked", "its thread ended"));
    thread.job = undefined;
    this.#assign();
  }

  /** Ends a job that took too long; the API server has given up on it or is about to. */
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

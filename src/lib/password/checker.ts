/**
 * Checks passwords on a pool of worker threads, for basic authentication: a strong hash takes tens of milliseconds, and
 * the event loop must not wait for it. Threads start with the first checks.
 *
 * Any client can cause a check, so the queue is bounded in number and in time, and guessing must not lock out others.
 * Policies take turns, and within a policy the client networks take turns (`TurnQueue`). When a network has just sent a
 * wrong password to a policy, its further checks for that policy wait in a second queue, which gets every second turn.
 * A hundred guessers, each with an address of its own, then delay an honest client by two checks and not by a hundred.
 *
 * check ──> known guesser? ──yes──> #guessing ─┐ every second turn
 *                └─no──> #honest ──────────────┴──> idle worker ──> true │ false (the network becomes a guesser)
 *           queue full: drop the newest job of the largest source, guessers first ──> "overloaded"
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { type Clock, systemClock } from "../time/clock.ts";
import { RecentMap } from "../recent-map.ts";
import { TurnQueue, type Asker } from "./turn-queue.ts";
import type { PasswordQuestion } from "./worker.ts";

export interface PasswordChecker {
  /** @returns "overloaded" when the check waited too long, when too many checks wait, or when its thread failed */
  check(password: Uint8Array, hash: string, asker: Asker): Promise<boolean | "overloaded">;
  close(): void;
}

interface Job {
  readonly question: PasswordQuestion;
  readonly asker: Asker;
  /** Queue in which the job waits. */
  readonly queue: TurnQueue<Job>;
  readonly settle: (verdict: boolean | "overloaded") => void;
  cancelTimeout: () => void;
}

const MAX_WAITING = 1024;
const MAX_WAIT_MS = 2000;
/** How long a network counts as guessing after a wrong password, and how many such networks are remembered. */
const GUESSER_MS = 60_000;
const MAX_GUESSERS = 8192;
const MAX_THREADS = Math.max(1, Math.min(4, availableParallelism() - 1));

export function createPasswordChecker(
  options: { maxThreads?: number; maxWaiting?: number; clock?: Clock } = {},
): PasswordChecker {
  const { maxThreads = MAX_THREADS, maxWaiting = MAX_WAITING, clock = systemClock } = options;
  const waiting = new WaitingJobs(maxWaiting, clock);
  const idle: Worker[] = [];
  const busy = new Map<Worker, Job>();
  let threads = 0;
  let closed = false;

  function assign(worker: Worker): void {
    const job = waiting.next();
    if (job === undefined) {
      idle.push(worker);
      return;
    }
    busy.set(worker, job);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage(job.question);
  }

  function start(): void {
    // Use the extension of this file: sources run as .ts, and the package holds compiled .js files.
    const worker = new Worker(new URL(`./worker${import.meta.url.slice(-3)}`, import.meta.url));
    threads++;
    worker.unref();
    worker.on("message", (verdict: boolean) => {
      const job = busy.get(worker);
      if (job !== undefined && !verdict) waiting.noteWrong(job.asker);
      job?.settle(verdict);
      busy.delete(worker);
      assign(worker);
    });
    const lost = (): void => {
      const job = busy.get(worker);
      if (!busy.delete(worker) && !idle.includes(worker)) return;
      threads--;
      if (idle.includes(worker)) idle.splice(idle.indexOf(worker), 1);
      job?.settle("overloaded");
      if (!closed && waiting.size > 0 && threads < maxThreads) start();
    };
    worker.on("error", lost);
    worker.on("exit", lost);
    assign(worker);
  }

  return {
    check(password, hash, asker) {
      if (closed) return Promise.resolve("overloaded");
      const { promise, resolve } = Promise.withResolvers<boolean | "overloaded">();
      if (!waiting.add({ password, hash }, asker, resolve)) return Promise.resolve("overloaded");
      const worker = idle.pop();
      if (worker !== undefined) assign(worker);
      else if (threads < maxThreads) start();
      return promise;
    },
    close() {
      closed = true;
      waiting.close();
      for (const [worker, job] of busy) {
        job.settle("overloaded");
        void worker.terminate();
      }
      for (const worker of idle) void worker.terminate();
    },
  };
}

class WaitingJobs {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #honest = new TurnQueue<Job>();
  readonly #guessing = new TurnQueue<Job>();
  /** Time until which a policy and network count as guessing. */
  readonly #guessers = new RecentMap<string, number>(MAX_GUESSERS);
  #servedGuesser = false;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
  }

  get size(): number {
    return this.#honest.size + this.#guessing.size;
  }

  /** @returns false when the queue is full and no other job has to give way */
  add(question: PasswordQuestion, asker: Asker, settle: Job["settle"]): boolean {
    const isGuesser = (this.#guessers.get(guesserKey(asker)) ?? 0) > this.#clock.now();
    if (this.size >= this.#most && !this.#makeRoom(asker, isGuesser)) return false;
    const queue = isGuesser ? this.#guessing : this.#honest;
    const job: Job = { question, asker, queue, settle, cancelTimeout: () => undefined };
    job.cancelTimeout = this.#clock.after(MAX_WAIT_MS, () => {
      queue.delete(job);
      settle("overloaded");
    });
    queue.push(job);
    return true;
  }

  next(): Job | undefined {
    this.#servedGuesser = !this.#servedGuesser;
    const [first, second] = this.#servedGuesser ? [this.#guessing, this.#honest] : [this.#honest, this.#guessing];
    const job = first.shift() ?? second.shift();
    job?.cancelTimeout();
    return job;
  }

  noteWrong(asker: Asker): void {
    this.#guessers.set(guesserKey(asker), this.#clock.now() + GUESSER_MS);
  }

  close(): void {
    for (let job = this.next(); job !== undefined; job = this.next()) job.settle("overloaded");
  }

  #makeRoom(asker: Asker, isGuesser: boolean): boolean {
    const victim = isGuesser
      ? this.#guessing.dropNewest(asker)
      : (this.#guessing.dropNewest() ?? this.#honest.dropNewest(asker));
    victim?.cancelTimeout();
    victim?.settle("overloaded");
    return victim !== undefined;
  }
}

function guesserKey({ group, source }: Asker): string {
  return `${group} ${source}`;
}

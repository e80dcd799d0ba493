/**
 * Checks passwords on threads of their own: a hash that is worth something takes tens of milliseconds. Threads start with
 * the first questions. The number that may wait is bounded, because anybody can ask.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { PasswordQuestion } from "./worker.ts";

export interface PasswordChecker {
  /** @returns "overloaded" when too many are waiting, or when the thread that was asked broke */
  check(password: Uint8Array, hash: string): Promise<boolean | "overloaded">;
  close(): void;
}

interface Job {
  readonly question: PasswordQuestion;
  readonly settle: (verdict: boolean | "overloaded") => void;
}

const MAX_WAITING = 256;
const MAX_THREADS = Math.max(1, Math.min(4, availableParallelism() - 1));

export function createPasswordChecker(options: { maxThreads?: number; maxWaiting?: number } = {}): PasswordChecker {
  const { maxThreads = MAX_THREADS, maxWaiting = MAX_WAITING } = options;
  const waiting: Job[] = [];
  const idle: Worker[] = [];
  const busy = new Map<Worker, Job>();
  let threads = 0;
  let closed = false;

  function assign(worker: Worker): void {
    const job = waiting.shift();
    if (job === undefined) {
      idle.push(worker);
      return;
    }
    busy.set(worker, job);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage(job.question);
  }

  function start(): void {
    // The extension is that of this file: sources run as they are, and the package holds compiled ones.
    const worker = new Worker(new URL(`./worker${import.meta.url.slice(-3)}`, import.meta.url));
    threads++;
    worker.unref();
    worker.on("message", (verdict: boolean) => {
      busy.get(worker)?.settle(verdict);
      busy.delete(worker);
      assign(worker);
    });
    const lost = (): void => {
      const job = busy.get(worker);
      if (!busy.delete(worker) && !idle.includes(worker)) return;
      threads--;
      if (idle.includes(worker)) idle.splice(idle.indexOf(worker), 1);
      job?.settle("overloaded");
      if (!closed && waiting.length > 0 && threads < maxThreads) start();
    };
    worker.on("error", lost);
    worker.on("exit", lost);
    assign(worker);
  }

  return {
    check(password, hash) {
      if (closed || waiting.length >= maxWaiting) return Promise.resolve("overloaded");
      const { promise, resolve } = Promise.withResolvers<boolean | "overloaded">();
      waiting.push({ question: { password, hash }, settle: resolve });
      const worker = idle.pop();
      if (worker !== undefined) assign(worker);
      else if (threads < maxThreads) start();
      return promise;
    },
    close() {
      closed = true;
      for (const job of waiting.splice(0)) job.settle("overloaded");
      for (const [worker, job] of busy) {
        job.settle("overloaded");
        void worker.terminate();
      }
      for (const worker of idle) void worker.terminate();
    },
  };
}

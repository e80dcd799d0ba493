/**
 * A watch of `/debug/trace` over all threads, for WorkerPool: the first thread that catches a request serves it, and the
 * others stop waiting. Threads that start later are not asked.
 */
import type { OpenedWatch } from "../debug-trace/debug-traces.ts";
import type { TraceReader, WatchOptions } from "../debug-trace/watch.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** @param watch number under which every thread knows the watch */
export async function openSharedWatch(
  threads: readonly WorkerThread[],
  watch: number,
  options: WatchOptions,
): Promise<OpenedWatch> {
  // A thread that ends while it is asked catches no request.
  const asked = threads.map(({ channel }) => channel.ask("watchOpen", { ...options, watch }).catch(() => undefined));
  const refused = (await Promise.all(asked)).find((refusal) => refusal !== undefined);
  const reader = new SharedWatch(threads, watch);
  if (refused === undefined) return { ok: true, reader };
  reader.close();
  return refused;
}

class SharedWatch implements TraceReader {
  readonly #watch: number;
  #threads: readonly WorkerThread[];
  #isDecided = false;

  /** @param threads on which the watch is open under this number */
  constructor(threads: readonly WorkerThread[], watch: number) {
    this.#threads = threads;
    this.#watch = watch;
  }

  async read(): Promise<readonly string[] | undefined> {
    if (!this.#isDecided) return this.#readFirst();
    const [thread] = this.#threads;
    return thread === undefined ? undefined : readOf(thread, this.#watch);
  }

  close(): void {
    this.#closeAll(this.#threads);
    this.#threads = [];
  }

  /** Waits for the first events of any thread; a thread that dies has none. */
  #readFirst(): Promise<readonly string[] | undefined> {
    const { promise, resolve } = Promise.withResolvers<readonly string[] | undefined>();
    let left = this.#threads.length;
    const arrived = (thread: WorkerThread, lines: readonly string[] | undefined): void => {
      left--;
      if (this.#isDecided) return;
      if (lines !== undefined) {
        this.#isDecided = true;
        this.#closeAll(this.#threads.filter((other) => other !== thread));
        this.#threads = [thread];
      }
      if (lines !== undefined || left === 0) resolve(lines);
    };
    for (const thread of this.#threads) void readOf(thread, this.#watch).then((lines) => arrived(thread, lines));
    if (left === 0) resolve(undefined);
    return promise;
  }

  #closeAll(threads: readonly WorkerThread[]): void {
    // A thread that is gone has no watch to close.
    for (const { channel } of threads) channel.ask("watchClose", this.#watch).catch(() => undefined);
  }
}

/** A thread that ends takes the rest of its events with it. */
function readOf({ channel }: WorkerThread, watch: number): Promise<readonly string[] | undefined> {
  return channel.ask("watchRead", watch).catch(() => undefined);
}

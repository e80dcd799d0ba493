/** One worker, as the main thread sees it: a thread with a channel, until it ends. */
import { Worker } from "node:worker_threads";
import { Channel, type Handlers } from "./channel.ts";
import type { MainProtocol, WorkerProtocol, WorkerSettings } from "./protocol.ts";

export class WorkerThread {
  readonly number: number;
  /** Resolves when the worker takes updates; rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when the thread has ended and nothing of it runs any more. */
  readonly ended: Promise<string>;
  readonly channel: Channel<WorkerProtocol, MainProtocol>;
  readonly #worker: Worker;
  #reason: string | undefined;

  constructor(settings: WorkerSettings, handlers: Omit<Handlers<MainProtocol>, "ready">) {
    this.number = settings.thread;
    // The extension is that of this file: sources run as they are, and the package holds compiled ones.
    const entry = new URL(`./data-plane-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(entry, { workerData: settings, name: `gwproxy-${settings.thread}` });
    const ready = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    this.#worker = worker;
    this.channel = new Channel<WorkerProtocol, MainProtocol>(worker, {
      ...handlers,
      ready: () => void ready.resolve(),
    });
    this.ready = ready.promise;
    this.ended = ended.promise;
    // Who waits for it hears of it; nobody has to.
    ready.promise.catch(() => undefined);
    // Nobody else will see where it was.
    worker.on("error", (error) => {
      this.#reason ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    worker.on("exit", (code) => {
      const text = this.#reason ?? `the thread ended with ${code}`;
      ready.reject(new Error(text));
      this.channel.end(text);
      ended.resolve(text);
    });
  }

  /** Ends the thread as a fault in it would: at once, wherever it is. @param reason that `ended` tells */
  kill(reason?: string): void {
    this.#reason ??= reason;
    void this.#worker.terminate();
  }
}

/** The main thread's handle on one worker: starts the thread, opens the channel, and reports its end to WorkerPool. */
import { Worker } from "node:worker_threads";
import { Channel, type Handlers } from "./channel.ts";
import type { MainProtocol, WorkerProtocol, WorkerSettings } from "./protocol.ts";

export class WorkerThread {
  readonly number: number;
  /** Resolves when the worker can apply updates; rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when the thread has ended completely. */
  readonly ended: Promise<string>;
  readonly channel: Channel<WorkerProtocol, MainProtocol>;
  readonly #worker: Worker;
  #reason: string | undefined;

  /** @param heapMib largest heap; a thread that needs more ends alone */
  constructor(settings: WorkerSettings, heapMib: number, handlers: Omit<Handlers<MainProtocol>, "ready">) {
    this.number = settings.thread;
    // Use the extension of this file: .ts from the sources, .js in the compiled package.
    const entry = new URL(`./data-plane-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(entry, {
      workerData: settings,
      name: `gwproxy-${settings.thread}`,
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    });
    const ready = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    this.#worker = worker;
    this.channel = new Channel<WorkerProtocol, MainProtocol>(worker, {
      ...handlers,
      ready: () => void ready.resolve(),
    });
    this.ready = ready.promise;
    this.ended = ended.promise;
    // Avoid an unhandled rejection when no caller awaits `ready`.
    ready.promise.catch(() => undefined);
    // Keep the stack trace: it is lost with the thread.
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

  /** Ends the thread at once, whatever it is doing, as a crash would. @param reason the one that `ended` reports */
  kill(reason?: string): void {
    this.#reason ??= reason;
    void this.#worker.terminate();
  }
}

/**
 * A work queue per key in which the latest value wins. While a worker handles one value of a key, newer values replace
 * each other and the last one is handled next; one key never runs twice at once. A failed value is retried with
 * exponential backoff per key, for as long as the key is wanted. The deployer and the status writer use it.
 *
 * put ──> next ──start (up to `concurrency`)─> running ──ok──> next? ready : idle
 *          ^                                     │
 *          └── backoff timer <──────────── failed ┘   (at once when a newer value has arrived)
 */
import { createBackoff, type Backoff } from "./time/backoff.ts";

export interface KeyedQueue<Value> {
  /** Queues the value to be handled as soon as a worker is free, and ends a backoff wait after earlier failures. */
  put(key: string, value: Value): void;
  /**
   * Queues the value after the next backoff wait of this key, as after a failure. It does nothing while the key is
   * busy.
   */
  putLater(key: string, value: Value): void;
  /** Drops the waiting value of this key, and does not retry the running one. */
  forget(key: string): void;
  /** Returns true while the key waits or a worker handles it. */
  has(key: string): boolean;
  /** Resolves when the queue is empty and no worker runs. */
  idle(): Promise<void>;
  /** Drops all waiting values and resolves when the running work has ended. */
  stop(): Promise<void>;
}

export interface QueueOptions<Value> {
  /** Handles one value; a rejection schedules a retry. */
  work(key: string, value: Value): Promise<void>;
  onFailure(key: string, error: unknown, retryInMs: number): void;
  readonly concurrency: number;
  readonly retryMs: { readonly initial: number; readonly max: number };
}

interface Item<Value> {
  /** undefined when no newer value is waiting. */
  next: { readonly value: Value } | undefined;
  isRunning: boolean;
  /** False after `forget`: a running value that then fails is not retried. */
  isWanted: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly backoff: Backoff;
}

export function createKeyedQueue<Value>(options: QueueOptions<Value>): KeyedQueue<Value> {
  return new LatestValueQueue(options);
}

class LatestValueQueue<Value> implements KeyedQueue<Value> {
  readonly #options: QueueOptions<Value>;
  readonly #items = new Map<string, Item<Value>>();
  /** Keys with a value that a worker can handle now, oldest first. */
  readonly #ready = new Set<string>();
  #running = 0;
  #isStopped = false;
  /** Resolve the calls of `idle` that wait. */
  #idleWaiters: (() => void)[] = [];

  constructor(options: QueueOptions<Value>) {
    this.#options = options;
  }

  put(key: string, value: Value): void {
    if (this.#isStopped) return;
    const item = this.#itemOf(key);
    item.isWanted = true;
    item.next = { value };
    item.backoff.reset();
    clearTimeout(item.timer);
    item.timer = undefined;
    if (!item.isRunning) this.#ready.add(key);
    this.#startReady();
  }

  putLater(key: string, value: Value): void {
    const item = this.#itemOf(key);
    if (this.#isStopped || isBusy(item)) return;
    item.next = { value };
    this.#startBackoff(key, item);
  }

  forget(key: string): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    clearTimeout(item.timer);
    item.timer = undefined;
    item.next = undefined;
    item.isWanted = false;
    this.#ready.delete(key);
    if (!item.isRunning) this.#items.delete(key);
    this.#notifyIdle();
  }

  has(key: string): boolean {
    const item = this.#items.get(key);
    return item !== undefined && isBusy(item);
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
      this.#notifyIdle();
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#ready.clear();
    for (const item of this.#items.values()) {
      clearTimeout(item.timer);
      item.next = undefined;
    }
    await this.idle();
  }

  #itemOf(key: string): Item<Value> {
    const known = this.#items.get(key);
    if (known !== undefined) return known;
    const { initial, max } = this.#options.retryMs;
    const backoff = createBackoff({ initialMs: initial, maxMs: max, random: () => 0 });
    const item: Item<Value> = { next: undefined, isRunning: false, isWanted: true, timer: undefined, backoff };
    this.#items.set(key, item);
    return item;
  }

  /** Starts as many ready keys as `concurrency` allows. */
  #startReady(): void {
    for (const key of this.#ready) {
      if (this.#running >= this.#options.concurrency) return;
      this.#ready.delete(key);
      const item = this.#items.get(key);
      if (item?.next === undefined || item.isRunning) continue;
      const { value } = item.next;
      item.next = undefined;
      void this.#run(key, item, value);
    }
  }

  /**
   * Handles one value and then decides what is next for its key: a newer value, a retry after a failure, or nothing.
   */
  async #run(key: string, item: Item<Value>, value: Value): Promise<void> {
    this.#running++;
    item.isRunning = true;
    try {
      await this.#options.work(key, value);
    } catch (error) {
      if (!this.#isStopped && item.isWanted) this.#retry(key, item, value, error);
    }
    this.#running--;
    item.isRunning = false;
    if (!item.isWanted) this.#items.delete(key);
    else if (item.next !== undefined && item.timer === undefined && !this.#isStopped) this.#ready.add(key);
    this.#startReady();
    this.#notifyIdle();
  }

  #retry(key: string, item: Item<Value>, value: Value, error: unknown): void {
    // A newer value does not wait out the backoff of an older one.
    const isNewer = item.next !== undefined;
    item.next ??= { value };
    const waitMs = isNewer ? 0 : this.#startBackoff(key, item);
    this.#options.onFailure(key, error, waitMs);
  }

  /** @returns milliseconds until the key is ready again */
  #startBackoff(key: string, item: Item<Value>): number {
    const waitMs = item.backoff.next();
    item.timer = setTimeout(() => {
      item.timer = undefined;
      this.#ready.add(key);
      this.#startReady();
    }, waitMs);
    return waitMs;
  }

  #notifyIdle(): void {
    // The items include every key ever put: scan them only when a caller of idle() waits.
    if (this.#running > 0 || this.#idleWaiters.length === 0) return;
    for (const item of this.#items.values()) if (isBusy(item)) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters = [];
  }
}

function isBusy({ next, isRunning }: Item<unknown>): boolean {
  return next !== undefined || isRunning;
}

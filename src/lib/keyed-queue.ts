/**
 * A work queue per key in which the latest value wins. While a worker handles one value of a key, newer values replace
 * each other and the last one is handled next; one key never runs twice at once. A failed value is retried with
 * exponential backoff per key, for as long as the key is wanted. The deployer and the status writer use it.
 *
 * put ──> next ──pump (up to `concurrency`)──> running ──ok──> next? ready : idle
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
  const { work, onFailure, concurrency, retryMs } = options;
  const items = new Map<string, Item<Value>>();
  /** Keys with a value that a worker can handle now, oldest first. */
  const ready = new Set<string>();
  let running = 0;
  let isStopped = false;
  let idlers: (() => void)[] = [];

  const itemOf = (key: string): Item<Value> => {
    const known = items.get(key);
    if (known !== undefined) return known;
    const backoff = createBackoff({ initialMs: retryMs.initial, maxMs: retryMs.max, random: () => 0 });
    const item: Item<Value> = { next: undefined, isRunning: false, isWanted: true, timer: undefined, backoff };
    items.set(key, item);
    return item;
  };

  const isBusy = ({ next, isRunning }: Item<Value>): boolean => next !== undefined || isRunning;

  const settle = (): void => {
    // The items include every key ever put: scan them only when a caller of idle() waits.
    if (running > 0 || idlers.length === 0) return;
    for (const item of items.values()) if (isBusy(item)) return;
    for (const resolve of idlers) resolve();
    idlers = [];
  };

  const later = (key: string, item: Item<Value>): number => {
    const wait = item.backoff.next();
    item.timer = setTimeout(() => {
      item.timer = undefined;
      ready.add(key);
      pump();
    }, wait);
    return wait;
  };

  // Handles one value and then decides what is next for its key: a newer value, a retry after a failure, or nothing.
  const run = async (key: string, item: Item<Value>, value: Value): Promise<void> => {
    running++;
    item.isRunning = true;
    try {
      await work(key, value);
    } catch (error) {
      if (!isStopped && item.isWanted) {
        // A newer value does not wait out the backoff of an older one.
        const isNewer = item.next !== undefined;
        item.next ??= { value };
        const wait = isNewer ? 0 : later(key, item);
        onFailure(key, error, wait);
      }
    }
    running--;
    item.isRunning = false;
    if (!item.isWanted) items.delete(key);
    else if (item.next !== undefined && item.timer === undefined && !isStopped) ready.add(key);
    pump();
    settle();
  };

  // Starts as many ready keys as `concurrency` allows.
  const pump = (): void => {
    for (const key of ready) {
      if (running >= concurrency) return;
      ready.delete(key);
      const item = items.get(key);
      if (item?.next === undefined || item.isRunning) continue;
      const { value } = item.next;
      item.next = undefined;
      void run(key, item, value);
    }
  };

  return {
    put(key, value) {
      if (isStopped) return;
      const item = itemOf(key);
      item.isWanted = true;
      item.next = { value };
      item.backoff.reset();
      clearTimeout(item.timer);
      item.timer = undefined;
      if (!item.isRunning) ready.add(key);
      pump();
    },
    putLater(key, value) {
      const item = itemOf(key);
      if (isStopped || isBusy(item)) return;
      item.next = { value };
      later(key, item);
    },
    forget(key) {
      const item = items.get(key);
      if (item === undefined) return;
      clearTimeout(item.timer);
      item.timer = undefined;
      item.next = undefined;
      item.isWanted = false;
      ready.delete(key);
      if (!item.isRunning) items.delete(key);
      settle();
    },
    has: (key) => {
      const item = items.get(key);
      return item !== undefined && isBusy(item);
    },
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        settle();
      }),
    async stop() {
      isStopped = true;
      ready.clear();
      for (const item of items.values()) {
        clearTimeout(item.timer);
        item.next = undefined;
      }
      await this.idle();
    },
  };
}

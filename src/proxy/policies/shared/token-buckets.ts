/**
 * Token buckets of local rate limits, refilled in steps: a bucket starts full, and every unit of time adds the base
 * amount up to the capacity. Steps instead of a continuous refill, because the reset header promises that tokens return
 * when the unit has elapsed.
 *
 * Buckets live in memory that all threads of the replica share (lib/shared-table.ts), so that a limit does not multiply
 * with the number of threads. They are lock-free: every change of the tokens is a compare-and-swap, repeated until no
 * other thread interferes.
 */
import { ownSlot, type SharedTable, type Slot } from "../../../lib/shared-table.ts";

export interface BucketSize {
  /** At most 2^32 - 2. */
  readonly capacity: number;
  readonly refill: number;
  readonly unitMs: number;
}

/** Indexes of the doubles of a slot: start of the first unit, and length of a unit (0 in a new bucket). */
const STARTED_MS = 0;
const UNIT_MS = 1;
/** Indexes of the integers of a slot: tokens used, and units refilled. */
const USED = 1;
const UNITS = 2;
const MAX_USED = 2 ** 32 - 1;

/**
 * One bucket. It stores the tokens used instead of those left, so that a limit may change in between: usage is kept,
 * and a limit that is lowered and raised again leaves the same amount as if it had not changed. A new unit length
 * restarts the count of units.
 */
class TokenBucket {
  readonly #slot: Slot;
  readonly #usedAt: number;
  readonly #unitsAt: number;
  readonly #startedAt: number;
  readonly #unitMsAt: number;

  constructor(slot: Slot) {
    this.#slot = slot;
    this.#usedAt = slot.intsAt + USED;
    this.#unitsAt = slot.intsAt + UNITS;
    this.#startedAt = slot.doublesAt + STARTED_MS;
    this.#unitMsAt = slot.doublesAt + UNIT_MS;
  }

  /** Applies the refills that are due and returns the tokens left. */
  remaining(size: BucketSize, nowMs: number): number {
    const { ints, doubles } = this.#slot;
    const { capacity, refill, unitMs } = size;
    if (doubles[this.#unitMsAt] !== unitMs) this.#beginUnit(unitMs, nowMs);
    const passed = Math.floor((nowMs - (doubles[this.#startedAt] as number)) / unitMs);
    const before = Atomics.load(ints, this.#unitsAt);
    // The subtraction wraps, because the count of units may overflow 32 bits. -1 means that this thread read the clock
    // before the thread that refilled last. A lower value is left from a unit length that another thread has just
    // replaced; it is corrected without a refill.
    const units = (passed - before) | 0;
    if (units > 0 || units < -1) {
      // The one thread whose swap succeeds refills for all threads.
      const isMoved = Atomics.compareExchange(ints, this.#unitsAt, before, passed | 0) === before;
      if (isMoved && units > 0) this.#refill(units * refill, capacity);
    }
    return Math.max(0, capacity - this.#used());
  }

  /** @returns false when another thread took the last token since `remaining` */
  tryTake({ capacity }: BucketSize): boolean {
    for (;;) {
      const used = this.#used();
      if (used >= capacity) return false;
      if (this.#swap(used, used + 1)) return true;
    }
  }

  giveBack(): void {
    for (;;) {
      const used = this.#used();
      if (this.#swap(used, Math.max(0, used - 1))) return;
    }
  }

  /** Takes tokens that were already used, beyond the capacity if need be. */
  take(amount: number): void {
    for (;;) {
      const used = this.#used();
      if (this.#swap(used, Math.min(MAX_USED, used + amount))) return;
    }
  }

  /** Returns whole seconds until the next refill, never more than the unit. */
  resetSeconds({ unitMs }: BucketSize, nowMs: number): number {
    const sinceStart = Math.max(0, nowMs - (this.#slot.doubles[this.#startedAt] as number));
    return Math.max(0, Math.ceil((unitMs - (sinceStart % unitMs)) / 1000));
  }

  release(): void {
    this.#slot.release();
  }

  #beginUnit(unitMs: number, nowMs: number): void {
    const { ints, doubles } = this.#slot;
    doubles[this.#startedAt] = nowMs;
    Atomics.store(ints, this.#unitsAt, 0);
    doubles[this.#unitMsAt] = unitMs;
  }

  /** Usage beyond the capacity is dropped at the refill, so a bucket never stays in debt. */
  #refill(tokens: number, capacity: number): void {
    for (;;) {
      const used = this.#used();
      if (this.#swap(used, Math.max(0, Math.min(used, capacity) - tokens))) return;
    }
  }

  #used(): number {
    return Atomics.load(this.#slot.ints, this.#usedAt) >>> 0;
  }

  #swap(from: number, to: number): boolean {
    return Atomics.compareExchange(this.#slot.ints, this.#usedAt, from | 0, to | 0) === (from | 0);
  }
}

export type { TokenBucket };

/** LRU table of buckets by key. Keys come from clients, so their number must be bounded. */
export class BucketTable {
  readonly #buckets = new Map<string | symbol, TokenBucket>();
  readonly #most: number;
  readonly #slots: SharedTable;
  readonly #name: string;
  #closed = false;
  /** The key used last: it is at the end of the map already, so it needs no reordering. */
  #newest: string | symbol | undefined;
  #newestBucket: TokenBucket | undefined;

  /** @param name unique within the process; the same in all its threads */
  constructor(name: string, most: number, slots: SharedTable) {
    this.#name = name;
    this.#most = most;
    this.#slots = slots;
  }

  /**
   * Returns the bucket of a key. Use it at once: a later call may evict it and give its slot to another key.
   * @param key a symbol cannot collide with the key of a client
   */
  get(key: string | symbol): TokenBucket {
    if (key === this.#newest && this.#newestBucket !== undefined) return this.#newestBucket;
    const known = this.#buckets.get(key);
    if (known !== undefined) this.#buckets.delete(key);
    const bucket = known ?? new TokenBucket(this.#claim(key));
    // Requests that outlive the policy must not occupy shared slots.
    if (!this.#closed) this.#put(key, bucket);
    return bucket;
  }

  /** Releases all slots; buckets requested later are local. */
  close(): void {
    this.#closed = true;
    for (const bucket of this.#buckets.values()) bucket.release();
    this.#buckets.clear();
    this.#newest = undefined;
    this.#newestBucket = undefined;
  }

  #claim(key: string | symbol): Slot {
    if (this.#closed) return ownSlot();
    return this.#slots.claim(typeof key === "symbol" ? `${this.#name}!` : `${this.#name}=${key}`);
  }

  #put(key: string | symbol, bucket: TokenBucket): void {
    this.#buckets.set(key, bucket);
    this.#newest = key;
    this.#newestBucket = bucket;
    if (this.#buckets.size <= this.#most) return;
    const [oldest] = this.#buckets;
    if (oldest === undefined) return;
    this.#buckets.delete(oldest[0]);
    oldest[1].release();
  }
}

/**
 * Token buckets that are refilled in steps: full at first, and every unit of time adds the base amount up to the
 * capacity. Steps, because "until the unit has elapsed" is what a client is promised in the reset header. A bucket is in
 * memory that all threads of the replica share, so that a limit does not multiply with them.
 */
import { ownSlot, type SharedTable, type Slot } from "../../../lib/shared-table.ts";

export interface BucketSize {
  /** At most 2^32 - 2. */
  readonly capacity: number;
  readonly refill: number;
  readonly unitMs: number;
}

/** Places in a slot. Numbers: when the first unit began, and its length; zero for a new bucket. */
const STARTED_MS = 0;
const UNIT_MS = 1;
/** Counts: the tokens that are used, and the units that were refilled. */
const USED = 1;
const UNITS = 2;
const MAX_USED = 2 ** 32 - 1;

/**
 * It holds what was used and not what is left, so that a limit may change in between: what was used stays used, and a
 * limit that is lowered and raised again leaves what it would have left without. Where the unit changes a new one begins.
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

  /** What is left now, after the refills that are due. */
  remaining(size: BucketSize, nowMs: number): number {
    const { ints, doubles } = this.#slot;
    const { capacity, refill, unitMs } = size;
    if (doubles[this.#unitMsAt] !== unitMs) this.#beginUnit(unitMs, nowMs);
    const passed = Math.floor((nowMs - (doubles[this.#startedAt] as number)) / unitMs);
    const before = Atomics.load(ints, this.#unitsAt);
    // The count of units may have gone round. One less is a thread that looked at the clock before the others; still less
    // is the count of a unit that another thread has just replaced.
    const units = (passed - before) | 0;
    if (units > 0 || units < -1) {
      // The thread that moves the count refills for all.
      const isMoved = Atomics.compareExchange(ints, this.#unitsAt, before, passed | 0) === before;
      if (isMoved && units > 0) this.#refill(units * refill, capacity);
    }
    return Math.max(0, capacity - this.#used());
  }

  /** @returns false when another thread took the last one since `remaining` */
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

  /** Takes more than is left where more was used. */
  take(amount: number): void {
    for (;;) {
      const used = this.#used();
      if (this.#swap(used, Math.min(MAX_USED, used + amount))) return;
    }
  }

  /** Until the next refill, whole seconds, never more than the unit. */
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

  /** What was used beyond the capacity is forgotten with the unit that it was used in. */
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

/** Buckets by key, the least recently used dropped: keys come from clients, so their number must be bounded. */
export class BucketTable {
  readonly #buckets = new Map<string | symbol, TokenBucket>();
  readonly #most: number;
  readonly #slots: SharedTable;
  readonly #name: string;
  #closed = false;
  /** The one used last, which is in its place already. */
  #newest: string | symbol | undefined;
  #newestBucket: TokenBucket | undefined;

  /** @param name unique within the process; the same in all its threads */
  constructor(name: string, most: number, slots: SharedTable) {
    this.#name = name;
    this.#most = most;
    this.#slots = slots;
  }

  /** The bucket for the moment: it may be another one's after the next call. @param key a symbol is no client's key */
  get(key: string | symbol): TokenBucket {
    if (key === this.#newest && this.#newestBucket !== undefined) return this.#newestBucket;
    const known = this.#buckets.get(key);
    if (known !== undefined) this.#buckets.delete(key);
    const bucket = known ?? new TokenBucket(this.#claim(key));
    // What is left of requests after the policy's end shall not hold slots.
    if (!this.#closed) this.#put(key, bucket);
    return bucket;
  }

  /** Gives all slots back; nothing is shared any more. */
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

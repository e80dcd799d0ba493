/**
 * Token buckets that are refilled in steps: full at first, and every unit of time adds the base amount up to the
 * capacity. Steps, because "until the unit has elapsed" is what a client is promised in the reset header. A bucket is in
 * memory that all threads of the replica share, so that a limit does not multiply with them.
 */
import { ownSlot, type SharedSlots, type Slot } from "../../lib/shared-slots.ts";

export interface BucketSize {
  /** At most 2^32 - 2. */
  readonly capacity: number;
  readonly refill: number;
  readonly unitMs: number;
}

/** Places in a slot: when the first unit began; the tokens plus one, zero for a new bucket; units that were refilled. */
const STARTED_MS = 0;
const TOKENS = 1;
const UNITS = 2;

/** Of one unit for ever: another unit is another bucket. */
class TokenBucket {
  readonly #slot: Slot;
  readonly #tokensAt: number;
  readonly #unitsAt: number;
  readonly #startedAt: number;

  constructor(slot: Slot) {
    this.#slot = slot;
    this.#tokensAt = slot.intsAt + TOKENS;
    this.#unitsAt = slot.intsAt + UNITS;
    this.#startedAt = slot.doublesAt + STARTED_MS;
  }

  /** What is left now. The capacity may have changed since the last call: what was used stays used. */
  remaining(size: BucketSize, nowMs: number): number {
    const { ints, doubles } = this.#slot;
    const { capacity, unitMs } = size;
    if (Atomics.load(ints, this.#tokensAt) === 0) {
      doubles[this.#startedAt] = nowMs;
      Atomics.compareExchange(ints, this.#tokensAt, 0, (capacity + 1) | 0);
    }
    const passed = Math.floor((nowMs - (doubles[this.#startedAt] as number)) / unitMs);
    const before = Atomics.load(ints, this.#unitsAt);
    // The count of units may have gone round; whoever moves it refills for all.
    const units = (passed - before) | 0;
    if (units > 0 && Atomics.compareExchange(ints, this.#unitsAt, before, passed | 0) === before)
      return this.#change(units * size.refill, capacity);
    const tokens = this.#tokens();
    return tokens > capacity ? this.#change(0, capacity) : tokens;
  }

  /** @returns false when another thread took the last one since `remaining` */
  tryTake(): boolean {
    const { ints } = this.#slot;
    for (;;) {
      const tokens = this.#tokens();
      if (tokens < 1) return false;
      if (Atomics.compareExchange(ints, this.#tokensAt, (tokens + 1) | 0, tokens | 0) === ((tokens + 1) | 0))
        return true;
    }
  }

  giveBack({ capacity }: BucketSize): void {
    this.#change(1, capacity);
  }

  /** Takes as much as there is: never below zero. */
  take(amount: number, { capacity }: BucketSize): void {
    this.#change(-amount, capacity);
  }

  /** Until the next refill, whole seconds, never more than the unit. */
  resetSeconds({ unitMs }: BucketSize, nowMs: number): number {
    const sinceStart = Math.max(0, nowMs - (this.#slot.doubles[this.#startedAt] as number));
    return Math.max(0, Math.ceil((unitMs - (sinceStart % unitMs)) / 1000));
  }

  release(): void {
    this.#slot.release();
  }

  #tokens(): number {
    return (Atomics.load(this.#slot.ints, this.#tokensAt) >>> 0) - 1;
  }

  /** @returns what is left then */
  #change(by: number, capacity: number): number {
    const { ints } = this.#slot;
    for (;;) {
      const tokens = this.#tokens();
      const next = Math.max(0, Math.min(capacity, tokens + by));
      const word = (tokens + 1) | 0;
      if (Atomics.compareExchange(ints, this.#tokensAt, word, (next + 1) | 0) === word) return next;
    }
  }
}

export type { TokenBucket };

/** Buckets by key, the least recently used dropped: keys come from clients, so their number must be bounded. */
export class BucketTable {
  readonly #buckets = new Map<string | symbol, TokenBucket>();
  readonly #most: number;
  readonly #slots: SharedSlots;
  readonly #name: string;
  #closed = false;
  /** The one used last, which is in its place already. */
  #newest: string | symbol | undefined;
  #newestBucket: TokenBucket | undefined;

  /** @param name unique within the process; the same in all its threads */
  constructor(name: string, most: number, slots: SharedSlots) {
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

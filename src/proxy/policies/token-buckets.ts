/**
 * Token buckets that are refilled in steps: full at first, and every unit of time adds the base amount up to the
 * capacity. Steps, because "until the unit has elapsed" is what a client is promised in the reset header.
 */
export interface BucketSize {
  readonly capacity: number;
  readonly refill: number;
  readonly unitMs: number;
}

export class TokenBucket {
  #tokens: number;
  #refilledAtMs: number;

  constructor(size: BucketSize, nowMs: number) {
    this.#tokens = size.capacity;
    this.#refilledAtMs = nowMs;
  }

  /** What is left now. The size may have changed since the last call: what was used stays used. */
  remaining({ capacity, refill, unitMs }: BucketSize, nowMs: number): number {
    const units = Math.floor((nowMs - this.#refilledAtMs) / unitMs);
    if (units > 0) {
      this.#tokens += units * refill;
      this.#refilledAtMs += units * unitMs;
    }
    this.#tokens = Math.min(this.#tokens, capacity);
    return this.#tokens;
  }

  /** Takes as much as there is: never below zero. */
  take(amount: number): void {
    this.#tokens = Math.max(0, this.#tokens - amount);
  }

  /** Until the next refill, whole seconds, never more than the unit. */
  resetSeconds({ unitMs }: BucketSize, nowMs: number): number {
    return Math.max(0, Math.ceil((unitMs - (nowMs - this.#refilledAtMs)) / 1000));
  }
}

/** Buckets by key, the least recently used dropped: keys come from clients, so their number must be bounded. */
export class BucketTable {
  readonly #buckets = new Map<string | symbol, TokenBucket>();
  readonly #most: number;
  /** The one used last, which is in its place already. */
  #newest: string | symbol | undefined;
  #newestBucket: TokenBucket | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string | symbol): TokenBucket | undefined {
    if (key === this.#newest) return this.#newestBucket;
    const known = this.#buckets.get(key);
    if (known === undefined) return undefined;
    this.#buckets.delete(key);
    return this.#put(key, known);
  }

  add(key: string | symbol, bucket: TokenBucket): TokenBucket {
    this.#put(key, bucket);
    if (this.#buckets.size > this.#most) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return bucket;
  }

  #put(key: string | symbol, bucket: TokenBucket): TokenBucket {
    this.#buckets.set(key, bucket);
    this.#newest = key;
    this.#newestBucket = bucket;
    return bucket;
  }
}

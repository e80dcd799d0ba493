/**
 * Statistics of one endpoint in shared memory, for all threads of the process: an exponentially weighted moving average
 * (EWMA) of health and latency, failures in a row, ejections and calls in flight. Balancing reads the score, `Attempt`
 * and `HealthRule` write.
 *
 * There are no locks. Two threads that update a moving average at the same time may lose a sample.
 * Counters use atomic additions and lose nothing. The ejection state is a single integer, changed by
 * compare-and-exchange, so that one thread wins each transition and the count never disagrees with the flag:
 *
 *     in rotation: 2n ──evict: +3──▶ ejected: 2(n+1)+1 ──first look after EVICTED_UNTIL: -1──▶ in rotation: 2(n+1)
 *
 * A healthy response sets n to 0 and keeps the flag.
 */
import type { SharedTable, Slot } from "../../lib/shared-table.ts";

const WEIGHT_OF_NEW = 0.3;
const PENDING_WEIGHT = 0.1;

/** Indexes among the slot's doubles. */
const HEALTH = 0;
const LATENCY = 1;
const EVICTED_UNTIL = 2;
/** Health with which the endpoint returns to rotation. */
const RESTORED = 3;
/** Indexes among the slot's integers; index 0 belongs to the slot itself (lib/shared-table.ts). */
const FAILURES = 1;
/** Twice the number of ejections, plus one while the endpoint is ejected, so that both change in one atomic step. */
const EVICTIONS = 2;
const TOTAL = 3;

export class EndpointStats {
  readonly #slots: SharedTable;
  readonly #name: string;
  #slot: Slot;
  #closed = false;
  /** Calls of this thread that hold the slot. */
  #calls = 0;

  /** @param name the same in every thread */
  constructor(slots: SharedTable, name: string) {
    this.#slots = slots;
    this.#name = name;
    this.#slot = this.#claim();
  }

  get health(): number {
    return this.#number(HEALTH);
  }

  /** Moving average of the seconds from the start of a call to the head of its response. */
  get latencySeconds(): number {
    return this.#number(LATENCY);
  }

  get pending(): number {
    return this.#slot.held;
  }

  get total(): number {
    return this.#count(TOTAL) >>> 0;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#count(FAILURES);
  }

  /** Ejections since the last healthy response. */
  get evictions(): number {
    return this.#count(EVICTIONS) >> 1;
  }

  /** Time on the clock of `isEvicted`; undefined when the endpoint is in rotation. */
  evictedUntilMs(nowMs: number): number | undefined {
    return this.isEvicted(nowMs) ? this.#number(EVICTED_UNTIL) : undefined;
  }

  get score(): number {
    return this.health / (1 + this.latencySeconds * (1 + PENDING_WEIGHT * this.pending));
  }

  /** Checks without the clock: false only when the endpoint is certainly in rotation. */
  get mayBeEvicted(): boolean {
    return (this.#count(EVICTIONS) & 1) !== 0;
  }

  /**
   * The first look after the time is over puts the endpoint back into rotation.
   * @param nowMs of a clock that all threads share
   */
  isEvicted(nowMs: number): boolean {
    const evictions = this.#count(EVICTIONS);
    if ((evictions & 1) === 0) return false;
    if (this.#number(EVICTED_UNTIL) > nowMs) return true;
    if (this.#swapEvictions(evictions, evictions - 1)) this.#setNumber(HEALTH, this.#number(RESTORED));
    return false;
  }

  /** Counts the start of a call. */
  begin(): void {
    // The endpoint may have left its set since it was picked. Claim its slot again, until the call itself holds it. While
    // earlier calls hold the slot it stays the same one, because they will let go of it.
    const isReleased = this.#closed && this.#calls === 0;
    if (isReleased) this.#slot = this.#claim();
    this.#slot.hold();
    if (isReleased) this.#slot.release();
    this.#calls++;
    Atomics.add(this.#slot.ints, this.#slot.intsAt + TOTAL, 1);
  }

  /** Counts the end of a call, after its outcome was recorded. */
  end(): void {
    this.#calls--;
    this.#slot.letGo();
  }

  /** @param seconds from the start of the call to the head of the response */
  recordHealthy(seconds: number): void {
    this.#sample(HEALTH, 1);
    this.#sample(LATENCY, seconds);
    if (this.#count(FAILURES) !== 0) Atomics.store(this.#slot.ints, this.#slot.intsAt + FAILURES, 0);
    const evictions = this.#count(EVICTIONS);
    if (evictions > 1) this.#swapEvictions(evictions, evictions & 1);
  }

  /** @returns failures in a row, this one included */
  recordUnhealthy(): number {
    this.#sample(HEALTH, 0);
    return Atomics.add(this.#slot.ints, this.#slot.intsAt + FAILURES, 1) + 1;
  }

  /**
   * Ejects the endpoint. An endpoint that is ejected already keeps its time.
   * @param baseMs is multiplied by the number of ejections, this one included
   * @param restoredHealth 0 to 1; undefined to keep the health that it has
   * @returns true when the endpoint was in rotation until now
   */
  evict(baseMs: number, restoredHealth: number | undefined, nowMs: number): boolean {
    if (this.isEvicted(nowMs)) return false;
    const evictions = this.#count(EVICTIONS);
    // Write the time before the flag, so that every thread that reads the flag also reads the time.
    this.#setNumber(EVICTED_UNTIL, nowMs + baseMs * ((evictions >> 1) + 1));
    this.#setNumber(RESTORED, restoredHealth ?? this.health);
    return this.#swapEvictions(evictions, evictions + 3);
  }

  /**
   * Releases the slot when the endpoint leaves its set; an endpoint with the same name can find the statistics again.
   */
  close(): void {
    this.#closed = true;
    this.#slot.release();
  }

  #claim(): Slot {
    const slot = this.#slots.claim(this.#name);
    // A new slot is zero, but a new endpoint has full health.
    if (slot.ints[slot.intsAt + TOTAL] === 0) slot.doubles[slot.doublesAt + HEALTH] = 1;
    return slot;
  }

  #sample(at: number, value: number): void {
    const old = this.#number(at);
    this.#setNumber(at, old === 0 ? value : WEIGHT_OF_NEW * value + (1 - WEIGHT_OF_NEW) * old);
  }

  #number(at: number): number {
    return this.#slot.doubles[this.#slot.doublesAt + at] as number; // a slot has four
  }

  #setNumber(at: number, value: number): void {
    this.#slot.doubles[this.#slot.doublesAt + at] = value;
  }

  #count(at: number): number {
    return this.#slot.ints[this.#slot.intsAt + at] as number; // a slot has four
  }

  #swapEvictions(from: number, to: number): boolean {
    return Atomics.compareExchange(this.#slot.ints, this.#slot.intsAt + EVICTIONS, from, to) === from;
  }
}

/**
 * How well one endpoint does, for all threads of the process (proxying.md 7.2 and 8): a view on a shared slot. Two threads
 * that write a moving average at once may lose a sample; evictions, rows of failures and calls in flight lose nothing.
 */
import type { SharedTable, Slot } from "../../lib/shared-table.ts";

const WEIGHT_OF_NEW = 0.3;
const PENDING_WEIGHT = 0.1;

/** Places among the slot's numbers. */
const HEALTH = 0;
const LATENCY = 1;
const EVICTED_UNTIL = 2;
/** The health with which it returns. */
const RESTORED = 3;
/** Places among the slot's counts; the first is the slot's own. */
const FAILURES = 1;
/** Twice the evictions so far, plus one while the endpoint is evicted: both change in one step. */
const EVICTIONS = 2;
const TOTAL = 3;

export class EndpointStats {
  readonly #slots: SharedTable;
  readonly #name: string;
  #slot: Slot;
  #closed = false;

  /** @param name the same in every thread */
  constructor(slots: SharedTable, name: string) {
    this.#slots = slots;
    this.#name = name;
    this.#slot = this.#claim();
  }

  get health(): number {
    return this.#number(HEALTH);
  }

  /** Seconds from the start of a call to the head of its answer. */
  get latencySeconds(): number {
    return this.#number(LATENCY);
  }

  get pending(): number {
    return this.#slot.held;
  }

  get total(): number {
    return this.#count(TOTAL) >>> 0;
  }

  /** In a row. */
  get failures(): number {
    return this.#count(FAILURES);
  }

  /** Since the last healthy answer. */
  get evictions(): number {
    return this.#count(EVICTIONS) >> 1;
  }

  /** On the clock of `isEvicted`; undefined when it is in rotation. */
  evictedUntilMs(nowMs: number): number | undefined {
    return this.isEvicted(nowMs) ? this.#number(EVICTED_UNTIL) : undefined;
  }

  get score(): number {
    return this.health / (1 + this.latencySeconds * (1 + PENDING_WEIGHT * this.pending));
  }

  /** Without a look at the clock: false when it is surely in rotation. */
  get mayBeEvicted(): boolean {
    return (this.#count(EVICTIONS) & 1) !== 0;
  }

  /** @param nowMs of a clock that all threads share; whoever looks first after the time is over puts the endpoint back into rotation */
  isEvicted(nowMs: number): boolean {
    const evictions = this.#count(EVICTIONS);
    if ((evictions & 1) === 0) return false;
    if (this.#number(EVICTED_UNTIL) > nowMs) return true;
    if (this.#swapEvictions(evictions, evictions - 1)) this.#setNumber(HEALTH, this.#number(RESTORED));
    return false;
  }

  /** A call begins. */
  begin(): void {
    // Its set may have let go of it meanwhile; the call holds the slot by itself.
    if (this.#closed) this.#slot = this.#claim();
    this.#slot.hold();
    if (this.#closed) this.#slot.release();
    Atomics.add(this.#slot.ints, this.#slot.intsAt + TOTAL, 1);
  }

  /** The call is over, and what is to be recorded of it was. */
  end(): void {
    this.#slot.letGo();
  }

  /** @param seconds from the start of the call to the head of the answer */
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
   * Takes the endpoint out of rotation; one that is out stays so for as long as was said.
   * @param baseMs times the number of evictions, this one included @param restoredHealth 0 to 1; undefined: what it is
   * @returns whether it was in rotation until now
   */
  evict(baseMs: number, restoredHealth: number | undefined, nowMs: number): boolean {
    if (this.isEvicted(nowMs)) return false;
    const evictions = this.#count(EVICTIONS);
    // Before the mark, so that whoever sees the mark sees the time as well.
    this.#setNumber(EVICTED_UNTIL, nowMs + baseMs * ((evictions >> 1) + 1));
    this.#setNumber(RESTORED, restoredHealth ?? this.health);
    return this.#swapEvictions(evictions, evictions + 3);
  }

  /** The set that the endpoint was in lets go of it; a later one of the same name goes on with the same record. */
  close(): void {
    this.#closed = true;
    this.#slot.release();
  }

  #claim(): Slot {
    const slot = this.#slots.claim(this.#name);
    // A slot begins with zeros, an endpoint in full health.
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

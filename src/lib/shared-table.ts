/**
 * Slots of memory that all threads of a process see, found by name: what must count once for the replica (rate buckets,
 * health of endpoints, calls in flight). In: names. Out: a slot that every thread which asks for the name gets, until
 * all have released it. A slot that nobody holds keeps its name and content until its place is needed for another name.
 *
 * An open-addressing table in one SharedArrayBuffer without locks: a thread may end at any point and the others go on.
 * Claiming is for configuration and for keys seen first (about a microsecond); what is done with a claimed slot costs what
 * its Atomics cost.
 */
import { hash, randomFillSync } from "node:crypto";

/** Threads of one table: bits of the control word of a slot. */
export const MAX_THREADS = 62;

/** The header, then the slots, then for each thread what it holds of each slot's HELD count. */
const HEADER_BYTES = 64;
const SLOT_BYTES = 64;
/** In 32-bit words of the header; the secret fills the rest. */
const CAPACITY_AT = 0;
const THREADS_AT = 1;
const SECRET_BYTES_AT = 16;
/** In 32-bit words of a slot: two of the name's hash, the control word of 64 bits, eight of numbers, four of counts. */
const HASH_AT = 0;
const CONTROL_AT = 2;
const DOUBLES_AT = 4;
const INTS_AT = 12;
/** A name lives within so many places of the one that its hash points to. */
const WINDOW = 64;

/** An insertion is under way, by the one thread whose bit is set too. */
const PENDING = 1n << 62n;
/** Said to a pending insertion by another thread that inserts the same name. */
const ABORTED = -(1n << 63n);
/** How often a thread looks again before it stops waiting for another one's insertion, which may never go on. */
const PATIENCE = 10_000;

/** Index of the count that `hold` and `letGo` keep, within a slot's counts. */
const HELD = 0;

/**
 * One slot. Free for use: four numbers, `doubles[doublesAt]` and up, and three counts, `ints[intsAt + 1]` and up. They are
 * zero when a name gets the slot, and whole tables' views, so that a slot costs no view of its own. Counts are for
 * Atomics; a number is written whole, and of two writers at once the last one wins.
 */
export class Slot {
  readonly ints: Int32Array;
  readonly intsAt: number;
  readonly doubles: Float64Array;
  readonly doublesAt: number;
  /** False: the table was full, and the slot is this thread's alone. */
  readonly isShared: boolean;
  readonly #heldHere: Int32Array;
  readonly #index: number;
  readonly #table: Table | undefined;
  readonly #name: string;
  /** Claims and holds of this thread. */
  #uses = 1;

  constructor(memory: Memory, index: number, table: Table | undefined, name: string) {
    const words = (HEADER_BYTES + index * SLOT_BYTES) / 4;
    this.ints = memory.ints;
    this.intsAt = words + INTS_AT;
    this.doubles = memory.doubles;
    this.doublesAt = (words + DOUBLES_AT) / 2;
    this.#heldHere = memory.heldHere;
    this.#index = index;
    this.#table = table;
    this.#name = name;
    this.isShared = table !== undefined;
  }

  /** Calls under way, of all threads. */
  get held(): number {
    return Atomics.load(this.ints, this.intsAt + HELD);
  }

  /** Counts a call that is under way. When this thread dies, its calls are taken off the count. */
  hold(): void {
    this.#uses++;
    Atomics.add(this.ints, this.intsAt + HELD, 1);
    this.#heldHere[this.#index] = (this.#heldHere[this.#index] ?? 0) + 1;
  }

  letGo(): void {
    this.#heldHere[this.#index] = (this.#heldHere[this.#index] ?? 0) - 1;
    Atomics.sub(this.ints, this.intsAt + HELD, 1);
    this.release();
  }

  /** Another claim of the same thread. */
  retain(): this {
    this.#uses++;
    return this;
  }

  /** Gives one claim back. After the last one, and the last `letGo`, nothing of the slot may be touched. */
  release(): void {
    if (--this.#uses === 0) this.#table?.vacate(this.#name, this.#index);
  }
}

interface Memory {
  readonly ints: Int32Array;
  readonly doubles: Float64Array;
  readonly heldHere: Int32Array;
}

interface Table {
  vacate(name: string, index: number): void;
}

/** @param threads at most MAX_THREADS; memory is used as slots are */
export function allocateSlots(capacity: number, threads: number): SharedArrayBuffer {
  if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`1 to ${MAX_THREADS} threads, not ${threads}`);
  // Whole words of 64 bits, as the views ask for.
  const heldBytes = Math.ceil((threads * capacity) / 2) * 8;
  const buffer = new SharedArrayBuffer(HEADER_BYTES + capacity * SLOT_BYTES + heldBytes);
  const header = new Int32Array(buffer);
  header[CAPACITY_AT] = capacity;
  header[THREADS_AT] = threads;
  // Names come from clients too: nobody outside may find two that share a slot.
  const secret = randomFillSync(Buffer.alloc(HEADER_BYTES - SECRET_BYTES_AT));
  new Uint8Array(buffer).set(secret, SECRET_BYTES_AT);
  return buffer;
}

/** A slot that no name leads to. */
export function ownSlot(): Slot {
  const own = new SharedArrayBuffer(HEADER_BYTES + SLOT_BYTES);
  const memory = { ints: new Int32Array(own), doubles: new Float64Array(own), heldHere: new Int32Array(1) };
  return new Slot(memory, 0, undefined, "");
}

export class SharedTable {
  readonly #capacity: number;
  readonly #threads: number;
  readonly #memory: Memory;
  readonly #controls: BigInt64Array;
  readonly #buffer: SharedArrayBuffer;
  readonly #secret: string;
  readonly #bit: bigint;
  readonly #mine = new Map<string, Slot>();
  /** Claims that found the table full. */
  refusals = 0;

  /** @param buffer from allocateSlots @param thread number of this thread, which no other living one has */
  constructor(buffer: SharedArrayBuffer, thread: number) {
    const ints = new Int32Array(buffer);
    this.#buffer = buffer;
    this.#capacity = ints[CAPACITY_AT] as number;
    this.#threads = ints[THREADS_AT] as number;
    if (thread < 0 || thread >= this.#threads) throw new RangeError(`no thread ${thread} of ${this.#threads}`);
    this.#memory = { ints, doubles: new Float64Array(buffer), heldHere: this.#heldBy(thread) };
    this.#controls = new BigInt64Array(buffer);
    this.#secret = Buffer.from(new Uint8Array(buffer, SECRET_BYTES_AT, HEADER_BYTES - SECRET_BYTES_AT)).toString("hex");
    this.#bit = 1n << BigInt(thread);
  }

  /** For one thread that shares with nobody. */
  static alone(capacity: number): SharedTable {
    return new SharedTable(allocateSlots(capacity, 1), 0);
  }

  /** The slot of a name: the same in all threads, unless the table is full. `release` gives it back. */
  claim(name: string): Slot {
    const mine = this.#mine.get(name);
    if (mine !== undefined) return mine.retain();
    const index = this.#claim(name);
    if (index === undefined) {
      this.refusals++;
      return ownSlot();
    }
    const slot = new Slot(this.#memory, index, this, name);
    this.#mine.set(name, slot);
    return slot;
  }

  /** For Slot alone: this thread has no use of the slot any more. */
  vacate(name: string, index: number): void {
    this.#mine.delete(name);
    Atomics.and(this.#controls, this.#controlAt(index), ~this.#bit);
  }

  /** How many slots any thread holds. */
  used(): number {
    let count = 0;
    for (let index = 0; index < this.#capacity; index++) if (this.#control(index) !== 0n) count++;
    return count;
  }

  /** Takes back all that a thread held, which must have ended, and its calls off the counts. */
  forget(thread: number): void {
    const { ints } = this.#memory;
    const held = this.#heldBy(thread);
    const bit = 1n << BigInt(thread);
    for (let index = 0; index < this.#capacity; index++) {
      const calls = held[index] ?? 0;
      held[index] = 0;
      if (calls !== 0) Atomics.sub(ints, this.#wordAt(index) + INTS_AT + HELD, calls);
      const control = this.#control(index);
      if ((control & bit) === 0n) continue;
      if ((control & PENDING) === 0n) Atomics.and(this.#controls, this.#controlAt(index), ~bit);
      else this.#giveUp(index);
    }
  }

  /** @returns undefined when there is no place */
  #claim(name: string): number | undefined {
    const digest = hash("sha256", this.#secret + name, "buffer");
    const home = digest.readUInt32LE(8) % this.#capacity;
    const high = digest.readInt32LE(0);
    // Zero in both words means that the slot has no name.
    const low = digest.readInt32LE(4) | 1;
    for (let patience = PATIENCE; ; patience--) {
      const found = this.#find(home, high, low, patience);
      if (found === "again") continue;
      const index = found ?? this.#insert(home, high, low, patience);
      if (index !== "again") return index;
    }
  }

  #find(home: number, high: number, low: number, patience: number): number | "again" | undefined {
    for (let offset = 0; offset < WINDOW && offset < this.#capacity; offset++) {
      const index = (home + offset) % this.#capacity;
      if (!this.#isNamed(index, high, low)) continue;
      const control = this.#control(index);
      if ((control & PENDING) !== 0n) {
        if (patience > 0) return "again";
        continue;
      }
      if (!this.#swap(index, control, control | this.#bit)) return "again";
      // Between the two looks the place may have gone to another name.
      if (this.#isNamed(index, high, low)) return index;
      Atomics.and(this.#controls, this.#controlAt(index), ~this.#bit);
      return "again";
    }
    return undefined;
  }

  /** Takes a free place, then makes sure that no other thread has put the same name elsewhere meanwhile. */
  #insert(home: number, high: number, low: number, patience: number): number | "again" | undefined {
    const index = this.#freePlace(home);
    if (index === undefined) return undefined;
    const mark = PENDING | this.#bit;
    if (!this.#swap(index, 0n, mark)) return "again";
    const { ints } = this.#memory;
    const word = this.#wordAt(index);
    ints.fill(0, word + DOUBLES_AT, word + SLOT_BYTES / 4);
    Atomics.store(ints, word + HASH_AT, high);
    Atomics.store(ints, word + HASH_AT + 1, low);
    for (let offset = 0; offset < WINDOW && offset < this.#capacity; offset++) {
      const other = (home + offset) % this.#capacity;
      if (other === index || !this.#isNamed(other, high, low)) continue;
      const control = this.#control(other);
      const yields = (control & PENDING) === 0n || (this.#precedes(home, other, index) && patience > 0);
      if (!yields && (control & ABORTED) === 0n && !this.#swap(other, control, control | ABORTED)) offset--;
      if (!yields) continue;
      this.#giveUp(index);
      return "again";
    }
    if (this.#swap(index, mark, this.#bit)) return index;
    this.#giveUp(index);
    return "again";
  }

  /** A place that never had a name, before one whose name nobody holds. */
  #freePlace(home: number): number | undefined {
    let free: number | undefined;
    for (let offset = 0; offset < WINDOW && offset < this.#capacity; offset++) {
      const index = (home + offset) % this.#capacity;
      if (this.#control(index) !== 0n) continue;
      if (this.#isNamed(index, 0, 0)) return index;
      free ??= index;
    }
    return free;
  }

  /** Of two insertions of one name the one nearer to its home goes on, so that they never stop each other. */
  #precedes(home: number, one: number, other: number): boolean {
    return (one - home + this.#capacity) % this.#capacity < (other - home + this.#capacity) % this.#capacity;
  }

  /** Ends a pending insertion: nobody else changes its place, except for the mark that aborts it. */
  #giveUp(index: number): void {
    const word = this.#wordAt(index);
    Atomics.store(this.#memory.ints, word + HASH_AT, 0);
    Atomics.store(this.#memory.ints, word + HASH_AT + 1, 0);
    Atomics.store(this.#controls, this.#controlAt(index), 0n);
  }

  #isNamed(index: number, high: number, low: number): boolean {
    const { ints } = this.#memory;
    const word = this.#wordAt(index);
    return Atomics.load(ints, word + HASH_AT) === high && Atomics.load(ints, word + HASH_AT + 1) === low;
  }

  #swap(index: number, from: bigint, to: bigint): boolean {
    return Atomics.compareExchange(this.#controls, this.#controlAt(index), from, to) === from;
  }

  #control(index: number): bigint {
    return Atomics.load(this.#controls, this.#controlAt(index));
  }

  #controlAt(index: number): number {
    return (this.#wordAt(index) + CONTROL_AT) / 2;
  }

  /** Index of a slot's first 32-bit word. */
  #wordAt(index: number): number {
    return (HEADER_BYTES + index * SLOT_BYTES) / 4;
  }

  #heldBy(thread: number): Int32Array {
    const offset = HEADER_BYTES + this.#capacity * SLOT_BYTES + thread * this.#capacity * 4;
    return new Int32Array(this.#buffer, offset, this.#capacity);
  }
}

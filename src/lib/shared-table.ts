/**
 * A lock-free hash table of fixed-size slots in one SharedArrayBuffer, which all threads of a process see. The data
 * plane keeps in it the numbers that must count once per replica: rate-limit buckets, endpoint health, calls in flight.
 * A thread claims a slot by name, and every thread that claims the same name gets the same slot until all of them have
 * released it. A released slot keeps its name and its content until the place is needed for another name.
 *
 * The table uses open addressing with linear probing. It has no lock on purpose: a worker thread may end at any
 * instruction, and a lock that it held would stop all others. Every change of a slot's state is one atomic operation,
 * and other threads abort or clean up an insertion that was left unfinished. A claim takes about a microsecond and
 * happens when configuration is applied or when a key is seen for the first time; using a claimed slot costs only its
 * own Atomics.
 *
 * The control word of a slot holds one bit per thread that has claimed it, and two marks for an insertion:
 *
 * 0 ──CAS──> PENDING|bit ──CAS──> bit ──other threads set theirs──> bit|bit' ──each thread clears its own──> 0
 *                 │
 *                 └──CAS by another thread that inserts the same name──> ABORTED|PENDING|bit ──> 0, and start over
 *
 * Two threads may insert the same name at two places at once. Each one marks its place PENDING, writes the hash of the
 * name, and only then scans the probe window for the same hash. Because both write before they look, at least one of
 * them sees the other. The insertion nearer to the home position wins and aborts the other one, so exactly one slot per
 * name survives.
 */
import { hash, randomFillSync } from "node:crypto";

/** The limit on threads per table: each thread owns one bit of a slot's 64-bit control word, and two bits are marks. */
export const MAX_THREADS = 62;

/** The buffer holds the header, then the slots, then for each thread its own share of the HELD count of each slot. */
const HEADER_BYTES = 64;
const SLOT_BYTES = 64;
/** Offsets in the header: the first two count 32-bit words, the last one counts bytes; the secret fills the rest. */
const CAPACITY_AT = 0;
const THREADS_AT = 1;
const SECRET_BYTES_AT = 16;
/**
 * Offsets in a slot, in 32-bit words: two words of the name's hash, the 64-bit control word, four doubles, four counts.
 */
const HASH_AT = 0;
const CONTROL_AT = 2;
const DOUBLES_AT = 4;
const INTS_AT = 12;
/** The probe window: a name lives at most this many places after the home position that its hash points to. */
const WINDOW = 64;

/** Marks an insertion in progress; the bit of the inserting thread is set as well. */
const PENDING = 1n << 62n;
/** Mark that a thread sets on the pending insertion of another thread when both insert the same name. */
const ABORTED = -(1n << 63n);
/**
 * How often a thread retries before it stops waiting for a pending insertion, whose thread may have been terminated.
 */
const PATIENCE = 10_000;

/** Index, within a slot's counts, of the number of calls in flight that `hold` and `letGo` maintain. */
const HELD = 0;

/**
 * One claimed slot. Callers may use four numbers, from `doubles[doublesAt]`, and three counts, from `ints[intsAt + 1]`;
 * all are zero when a name first gets the slot. The arrays are views of the whole table, so that a slot does not need
 * views of its own. Counts must be changed with Atomics; a number is written as a whole, and the last of two concurrent
 * writers wins.
 */
export class Slot {
  readonly ints: Int32Array;
  readonly intsAt: number;
  readonly doubles: Float64Array;
  readonly doublesAt: number;
  /** False when the table was full: the slot then belongs to this thread alone. */
  readonly isShared: boolean;
  readonly #heldHere: Int32Array;
  readonly #index: number;
  readonly #table: Table | undefined;
  readonly #name: string;
  /** Number of claims and holds of this thread; the slot is vacated when it reaches zero. */
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

  /** Number of calls in flight, summed over all threads. */
  get held(): number {
    return Atomics.load(this.ints, this.intsAt + HELD);
  }

  /** Counts one call in flight. `SharedTable.forget` subtracts the calls of a thread that died. */
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

  /** Adds a claim of the same thread. */
  retain(): this {
    this.#uses++;
    return this;
  }

  /**
   * Returns one claim. After the last claim and the last `letGo` the slot must not be touched: it may get another name.
   */
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

/**
 * Allocates the buffer of a table. The operating system commits its pages only as slots are touched.
 *
 * @param threads at most MAX_THREADS
 */
export function allocateSlots(capacity: number, threads: number): SharedArrayBuffer {
  if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`1 to ${MAX_THREADS} threads, not ${threads}`);
  // Round up to whole 64-bit words, because the views require it.
  const heldBytes = Math.ceil((threads * capacity) / 2) * 8;
  const buffer = new SharedArrayBuffer(HEADER_BYTES + capacity * SLOT_BYTES + heldBytes);
  const header = new Int32Array(buffer);
  header[CAPACITY_AT] = capacity;
  header[THREADS_AT] = threads;
  // Names can come from clients. The secret keys the hash, so that a client cannot choose two names that collide.
  const secret = randomFillSync(Buffer.alloc(HEADER_BYTES - SECRET_BYTES_AT));
  new Uint8Array(buffer).set(secret, SECRET_BYTES_AT);
  return buffer;
}

/** Makes a private slot for one thread, outside any table. */
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
  /** Number of claims that found the table full. */
  rejectedClaims = 0;

  /**
   * @param buffer a buffer from allocateSlots
   * @param thread number of this thread, which no other live thread may have
   */
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

  /** Makes a table for a single thread, with a buffer of its own. */
  static alone(capacity: number): SharedTable {
    return new SharedTable(allocateSlots(capacity, 1), 0);
  }

  /** Returns the slot of a name, which is the same in all threads unless the table is full. `release` returns it. */
  claim(name: string): Slot {
    const mine = this.#mine.get(name);
    if (mine !== undefined) return mine.retain();
    const index = this.#claim(name);
    if (index === undefined) {
      this.rejectedClaims++;
      return ownSlot();
    }
    const slot = new Slot(this.#memory, index, this, name);
    this.#mine.set(name, slot);
    return slot;
  }

  /** Clears the bit of this thread. Only Slot calls it, when the last claim of the thread is released. */
  vacate(name: string, index: number): void {
    this.#mine.delete(name);
    Atomics.and(this.#controls, this.#controlAt(index), ~this.#bit);
  }

  /** Counts the slots that at least one thread holds. */
  used(): number {
    let count = 0;
    for (let index = 0; index < this.#capacity; index++) if (this.#control(index) !== 0n) count++;
    return count;
  }

  /** Releases all slots of a thread that has ended, and subtracts its calls in flight from the counts. */
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

  /** @returns undefined when the probe window has no free place */
  #claim(name: string): number | undefined {
    const digest = hash("sha256", this.#secret + name, "buffer");
    const home = digest.readUInt32LE(8) % this.#capacity;
    const high = digest.readInt32LE(0);
    // A hash of two zero words marks a place without a name, so the low word must never be zero.
    const low = digest.readInt32LE(4) | 1;
    for (let patience = PATIENCE; ; patience--) {
      const found = this.#find(home, high, low, patience);
      if (found === "again") continue;
      const index = found ?? this.#insert(home, high, low, patience);
      if (index !== "again") return index;
    }
  }

  /**
   * Looks for the name in its probe window and sets the bit of this thread. "again" means that another thread has
   * changed the slot, or is inserting the same name; after PATIENCE rounds such an insertion is skipped, because its
   * thread may have ended.
   */
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
      // Check again: before the swap succeeded the place may have been given to another name.
      if (this.#isNamed(index, high, low)) return index;
      Atomics.and(this.#controls, this.#controlAt(index), ~this.#bit);
      return "again";
    }
    return undefined;
  }

  /**
   * Takes a free place, then checks that no other thread has inserted the same name at another place in the meantime.
   * When two insertions meet, the one that loses clears its place and starts over.
   */
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
      // Another thread has the same name. Give up for a finished slot, and for a pending one nearer to its home; abort
      // every other pending one. When the abort fails, its state has changed, so look at it again.
      const control = this.#control(other);
      const yields = (control & PENDING) === 0n || (this.#precedes(home, other, index) && patience > 0);
      if (!yields && (control & ABORTED) === 0n && !this.#swap(other, control, control | ABORTED)) offset--;
      if (!yields) continue;
      this.#giveUp(index);
      return "again";
    }
    // The swap fails when another thread has aborted this insertion.
    if (this.#swap(index, mark, this.#bit)) return index;
    this.#giveUp(index);
    return "again";
  }

  /**
   * Finds a free place. It prefers a place that never had a name to one whose name has no holder left, because the
   * latter keeps content that its name may still claim again.
   */
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

  /**
   * Decides between two insertions of one name: the one nearer to its home continues. A fixed order prevents that both
   * give up for each other forever.
   */
  #precedes(home: number, one: number, other: number): boolean {
    return (one - home + this.#capacity) % this.#capacity < (other - home + this.#capacity) % this.#capacity;
  }

  /** Ends a pending insertion. Plain stores are enough: other threads change a pending place only to set ABORTED. */
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

  /** Returns the index of a slot's first 32-bit word. */
  #wordAt(index: number): number {
    return (HEADER_BYTES + index * SLOT_BYTES) / 4;
  }

  #heldBy(thread: number): Int32Array {
    const offset = HEADER_BYTES + this.#capacity * SLOT_BYTES + thread * this.#capacity * 4;
    return new Int32Array(this.#buffer, offset, this.#capacity);
  }
}

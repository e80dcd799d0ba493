/**
 * Short records that all threads of a replica see, by digest: which sessions were ended, and which session ids targets
 * issued when a session was healed. Places are in one SharedArrayBuffer; each has a lock word that a writer takes with
 * one atomic operation and a reader compares before and after (seqlock). A digest has a few places; the oldest record in
 * them makes room for a new one, so that the memory is bounded.
 *
 *     lock (4) │ length (4) │ time (8) │ digest (16) │ bytes
 *
 * The lock counts the writes of its place; while a thread writes it is -1 minus the number of the thread, so that the
 * places of a thread that died while it wrote can be freed.
 */

const HEADER_BYTES = 16;
const HEAD_BYTES = 32;
const DIGEST_BYTES = 16;
/** Largest count of writes, before it begins anew. */
const MAX_COUNT = 0x7fff_ffff;
/** Attempts to write while other threads hold the place; a write takes microseconds, unless its thread has died. */
const MAX_ATTEMPTS = 1_000;
/** Places in which a digest may stand. */
const WINDOW = 8;

/** @param maxBytes of one record, without its head */
export function allocateRecords(capacity: number, maxBytes: number): SharedArrayBuffer {
  const place = HEAD_BYTES + Math.ceil(maxBytes / 8) * 8;
  const buffer = new SharedArrayBuffer(HEADER_BYTES + capacity * place);
  new Int32Array(buffer, 0, 2).set([capacity, place]);
  return buffer;
}

export class SharedRecords {
  readonly #ints: Int32Array;
  readonly #times: Float64Array;
  readonly #bytes: Buffer;
  readonly #capacity: number;
  readonly #place: number;
  readonly #thread: number;

  /** @param thread number of this thread, unique among the running ones */
  constructor(buffer: SharedArrayBuffer, thread = 0) {
    this.#thread = thread;
    const [capacity = 0, place = 0] = new Int32Array(buffer, 0, 2);
    this.#ints = new Int32Array(buffer);
    this.#times = new Float64Array(buffer);
    this.#bytes = Buffer.from(buffer);
    this.#capacity = capacity;
    this.#place = place;
  }

  /**
   * @param digest 32 hexadecimal digits
   * @param timeMs of the record, for `sinceMs` of `get`
   * @param replaces whether a record may take the place of the one that is there; asked while no other thread can write
   * @returns whether the record is there now
   */
  put(
    digest: string,
    bytes: Buffer,
    timeMs: number,
    replaces: (present: Buffer, timeMs: number) => boolean = () => true,
  ): boolean {
    if (bytes.length > this.#place - HEAD_BYTES) return false;
    const key = Buffer.from(digest, "hex");
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const at = this.#find(key) ?? this.#oldest(key);
      const lock = at / 4;
      const before = Atomics.load(this.#ints, lock);
      // A negative number means that another thread writes here now.
      const held = -1 - this.#thread;
      if (before < 0 || Atomics.compareExchange(this.#ints, lock, before, held) !== before) continue;
      const present = this.#find(key);
      // Another thread has written this digest elsewhere meanwhile, or finds a reason against the record.
      const isTaken = present !== undefined && present !== at;
      if (isTaken || (present === at && !replaces(this.#copyOf(at), this.#times[(at + 8) / 8] ?? 0))) {
        Atomics.store(this.#ints, lock, before);
        if (isTaken) continue;
        return false;
      }
      this.#ints[lock + 1] = bytes.length;
      this.#times[(at + 8) / 8] = timeMs;
      key.copy(this.#bytes, at + 16);
      bytes.copy(this.#bytes, at + HEAD_BYTES);
      Atomics.store(this.#ints, lock, (before + 1) & MAX_COUNT);
      return true;
    }
    return false;
  }

  /** Frees the places that a thread held when it ended; what it wrote there is dropped. */
  forget(thread: number): void {
    for (let place = 0; place < this.#capacity; place++) {
      const at = HEADER_BYTES + place * this.#place;
      if (Atomics.load(this.#ints, at / 4) !== -1 - thread) continue;
      this.#bytes.fill(0, at + 8, at + HEAD_BYTES);
      // The count before is not known; readers must not take another one for it.
      Atomics.store(this.#ints, at / 4, Math.floor(Math.random() * MAX_COUNT));
    }
  }

  /** @returns undefined when there is no record of this digest, or an older one */
  get(digest: string, sinceMs: number): Buffer | undefined {
    const key = Buffer.from(digest, "hex");
    const at = this.#find(key);
    if (at === undefined) return undefined;
    const lock = at / 4;
    const before = Atomics.load(this.#ints, lock);
    const copy = this.#copyOf(at);
    const timeMs = this.#times[(at + 8) / 8] ?? 0;
    const isWhole = before >= 0 && this.#isAt(at, key) && Atomics.load(this.#ints, lock) === before;
    return isWhole && timeMs >= sinceMs ? copy : undefined;
  }

  #copyOf(at: number): Buffer {
    const length = this.#ints[at / 4 + 1] ?? 0;
    return Buffer.from(this.#bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length));
  }

  #find(key: Buffer): number | undefined {
    for (let offset = 0; offset < WINDOW; offset++) {
      const at = this.#at(key, offset);
      if (this.#isAt(at, key)) return at;
    }
    return undefined;
  }

  #oldest(key: Buffer): number {
    let oldest = this.#at(key, 0);
    for (let offset = 1; offset < WINDOW; offset++) {
      const at = this.#at(key, offset);
      if ((this.#times[(at + 8) / 8] ?? 0) < (this.#times[(oldest + 8) / 8] ?? 0)) oldest = at;
    }
    return oldest;
  }

  #isAt(at: number, key: Buffer): boolean {
    return this.#bytes.compare(key, 0, DIGEST_BYTES, at + 16, at + 16 + DIGEST_BYTES) === 0;
  }

  #at(key: Buffer, offset: number): number {
    return HEADER_BYTES + ((key.readUInt32LE(0) + offset) % this.#capacity) * this.#place;
  }
}

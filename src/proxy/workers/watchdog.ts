/**
 * Notices a thread that no longer comes round: each says so with a count in shared memory, and the main thread looks at it. Only
 * its own looks measure the time, so that a process which was suspended, or a machine that is too busy for all of it, kills nobody.
 */

/** Both between two beats of a thread and between two looks of the main one. */
export const BEAT_MS = 1_000;

export function allocateBeats(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT);
}

/** Says once and then again and again that this thread comes round. */
export function startBeating(buffer: SharedArrayBuffer, thread: number): void {
  const beats = new Int32Array(buffer);
  const beat = (): void => void Atomics.add(beats, thread, 1);
  beat();
  setInterval(beat, BEAT_MS).unref();
}

export class Watchdog {
  readonly #beats: Int32Array;
  readonly #patience: number;
  /** By thread: the last count, and for how many looks it has not changed. */
  readonly #seen = new Map<number, { count: number; looks: number }>();

  /** @param buffer from allocateBeats @param stuckAfterMs a thread that does not come round for so long is stuck; 0: none ever is */
  constructor(buffer: SharedArrayBuffer, stuckAfterMs: number) {
    this.#beats = new Int32Array(buffer);
    this.#patience = stuckAfterMs === 0 ? Infinity : Math.max(1, Math.ceil(stuckAfterMs / BEAT_MS));
  }

  get isOn(): boolean {
    return this.#patience !== Infinity;
  }

  /** A thread begins with that number. Until its first beat it is being loaded. */
  born(thread: number): void {
    Atomics.store(this.#beats, thread, 0);
    this.#seen.delete(thread);
  }

  /** Looks once. @returns whether the thread is stuck */
  isStuck(thread: number): boolean {
    const count = Atomics.load(this.#beats, thread);
    const seen = this.#seen.get(thread);
    if (count === 0 || seen?.count !== count) {
      this.#seen.set(thread, { count, looks: 0 });
      return false;
    }
    return ++seen.looks >= this.#patience;
  }
}

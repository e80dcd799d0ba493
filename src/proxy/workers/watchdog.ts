/**
 * Detects worker threads whose event loop is blocked; WorkerPool replaces them. Each worker increments a heartbeat
 * counter in shared memory, and the main thread compares it once per interval.
 *
 * Time is measured in looks of the main thread, not with a clock. A suspended process, or a machine that is too busy
 * for every thread, delays the looks as well; with a clock it would seem that all workers were stuck at once.
 */

/** Interval between two beats of a worker, and between two looks of the main thread. */
export const BEAT_MS = 1_000;

/** Increments this thread's heartbeat now and at each interval. */
export function startBeating(buffer: SharedArrayBuffer, thread: number): void {
  const beats = new Int32Array(buffer);
  const beat = (): void => void Atomics.add(beats, thread, 1);
  beat();
  setInterval(beat, BEAT_MS).unref();
}

export class Watchdog {
  readonly #beats: Int32Array;
  readonly #patience: number;
  /** Last count by thread, and the number of looks since it changed. */
  readonly #seen = new Map<number, { count: number; looks: number }>();

  /**
   * @param buffer from allocateBeats
   * @param stuckAfterMs time without a beat after which a thread is stuck; 0 disables
   */
  constructor(buffer: SharedArrayBuffer, stuckAfterMs: number) {
    this.#beats = new Int32Array(buffer);
    this.#patience = stuckAfterMs === 0 ? Infinity : Math.max(1, Math.ceil(stuckAfterMs / BEAT_MS));
  }

  get isOn(): boolean {
    return this.#patience !== Infinity;
  }

  /** Resets the counter for a new thread. While the count is 0, the thread is loading and not taken as stuck. */
  reset(thread: number): void {
    Atomics.store(this.#beats, thread, 0);
    this.#seen.delete(thread);
  }

  /** Looks once; call it once per interval. @returns whether the thread is stuck */
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

/** The time as a dependency, so that tests can prove time-dependent code without waiting. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `delayMs`, without keeping the process alive. @returns a function that cancels the call */
  after(delayMs: number, run: () => void): () => void;
}

/** Node fires a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

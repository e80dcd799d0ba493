/** A clock that stands still until a test advances it. */
import type { Clock } from "../../../src/lib/time/clock.ts";

export interface TestClock extends Clock {
  /** Runs the timers that become due, in order; resolves when the work that they started has run. */
  advance(ms: number): Promise<void>;
  /** Returns the milliseconds until each timer. */
  waiting(): number[];
}

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

export function testClock(startMs = 1_000_000): TestClock {
  let nowMs = startMs;
  const timers = new Set<Timer>();
  return {
    now: () => nowMs,
    after(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    waiting: () => [...timers].map(({ atMs }) => atMs - nowMs),
    async advance(ms) {
      const end = nowMs + ms;
      for (;;) {
        const [next] = [...timers].filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) break;
        nowMs = Math.max(nowMs, next.atMs);
        timers.delete(next);
        next.run();
        await new Promise(setImmediate);
      }
      nowMs = end;
      await new Promise(setImmediate);
    },
  };
}

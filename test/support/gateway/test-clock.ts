/** A clock that stands still until a test moves it. */
import type { Clock } from "../../../src/lib/clock.ts";

export interface TestClock extends Clock {
  /** Runs what is due on the way, in order; resolves when what it started has come to rest. */
  advance(ms: number): Promise<void>;
  /** Milliseconds until each timer. */
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

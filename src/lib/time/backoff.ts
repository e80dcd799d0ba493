/**
 * Exponential backoff for retries: the wait doubles from `initialMs` to `maxMs`, with jitter so that many clients do
 * not return at once.
 */

export interface Backoff {
  /** Returns the wait before the next try, in milliseconds. It grows with every call until `reset`. */
  next(): number;
  reset(): void;
}

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Returns a number in [0, 1), like Math.random. The jitter takes away up to half of a wait. */
  readonly random?: () => number;
}

export function createBackoff({ initialMs, maxMs, random = Math.random }: BackoffOptions): Backoff {
  let failures = 0;
  return {
    next() {
      // Bound the exponent: over a long outage the power would grow to Infinity.
      const whole = Math.min(maxMs, initialMs * 2 ** Math.min(failures++, 30));
      return whole * (1 - random() / 2);
    },
    reset() {
      failures = 0;
    },
  };
}

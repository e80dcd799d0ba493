/** Waiting times for retries: doubling from a first to a last one, with jitter so that many clients do not return at once. */

export interface Backoff {
  /** How long to wait before the next try, in milliseconds. Grows with every call until `reset`. */
  next(): number;
  reset(): void;
}

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** 0 ≤ x < 1, as Math.random. Up to half of a wait is taken away by it. */
  readonly random?: () => number;
}

export function createBackoff({ initialMs, maxMs, random = Math.random }: BackoffOptions): Backoff {
  let failures = 0;
  return {
    next() {
      // Bounded before the power, which would grow to Infinity over a long outage.
      const whole = Math.min(maxMs, initialMs * 2 ** Math.min(failures++, 30));
      return whole * (1 - random() / 2);
    },
    reset() {
      failures = 0;
    },
  };
}

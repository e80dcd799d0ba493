/** A monotonic clock that threads can compare: `performance.now()` starts anew in each thread, this clock does not. */

const OFFSET_MS = offsetMs();

/** Returns the milliseconds of a clock that all threads of the process share, exact to a few microseconds. */
export function monotonicMs(): number {
  return performance.now() + OFFSET_MS;
}

/**
 * Measures the offset with the closest of ten pairs of readings, because the scheduler may pause a thread between two.
 */
function offsetMs(): number {
  let best = { offset: 0, error: Number.POSITIVE_INFINITY };
  for (let look = 0; look < 10; look++) {
    const before = performance.now();
    const shared = Number(process.hrtime.bigint()) / 1e6;
    const error = performance.now() - before;
    if (error < best.error) best = { offset: shared - before - error / 2, error };
  }
  return best.offset;
}

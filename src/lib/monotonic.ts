/** Time that threads can compare: `performance.now()` begins anew with each thread, this does not. */

const OFFSET_MS = offsetMs();

/** Milliseconds of a clock that is the same in all threads of the process, to some microseconds. */
export function monotonicMs(): number {
  return performance.now() + OFFSET_MS;
}

/** From the closest of a few pairs of looks at both clocks: a thread may be put aside between two looks. */
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

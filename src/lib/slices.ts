/**
 * Runs long work in slices so that the event loop stays free: a generator yields between pieces, and other work runs
 * after each slice. The directory source uses it, which parses files beside the data plane of `gwproxy up`.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Length of a slice; one piece may overrun it. */
const TURN_MS = 5;

/**
 * Runs a generator to its end, one slice at a time.
 *
 * @param isStale tells between slices that the result is no longer wanted
 * @returns undefined when the result was no longer wanted
 */
export async function runInSlices<T>(
  steps: Generator<unknown, T>,
  isStale: () => boolean = () => false,
): Promise<T | undefined> {
  let endsAt = performance.now() + TURN_MS;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    if (performance.now() < endsAt) continue;
    await nextTurn();
    if (isStale()) return undefined;
    endsAt = performance.now() + TURN_MS;
  }
}

/** Runs a generator to its end without a pause. */
export function runAtOnce<T>(steps: Generator<unknown, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/**
 * Long work that leaves the event loop free: a generator yields between pieces, and others run when its turn is over. Used
 * where files are read, beside the data plane of `gwproxy up`.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

/** How long a turn may last before others run. One piece may overrun it. */
const TURN_MS = 5;

/**
 * Runs a generator to its end, a turn at a time.
 * @param isStale asked between turns, whether the result is still wanted
 * @returns undefined when it was not
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

/** Runs a generator to its end at once. */
export function runAtOnce<T>(steps: Generator<unknown, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

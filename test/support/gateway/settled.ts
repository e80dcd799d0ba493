/** Waits until a flow stands still, for flows whose end has no event. */
import { setTimeout as pause } from "node:timers/promises";

/**
 * Resolves when the number has changed and then stayed the same for twenty checks, many times the duration of one step.
 */
export async function settled(read: () => number): Promise<number> {
  for (let before = read(), quiet = 0; ;) {
    await pause(10);
    const now = read();
    quiet = now === before && now > 0 ? quiet + 1 : 0;
    if (quiet === 20) return now;
    before = now;
  }
}

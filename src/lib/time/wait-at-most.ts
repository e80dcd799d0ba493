/** Waits for work that may take too long; it continues when the time is over. The pool of worker threads uses it. */
import type { Clock } from "./clock.ts";

export async function waitAtMost(clock: Pick<Clock, "after">, ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  await Promise.race([work, late]);
  cancel();
}

/** Waiting for a flow to stand still, which nothing announces. */
import { setTimeout as pause } from "node:timers/promises";

/** Resolves when the number has moved and then not again for twenty looks, many times what one step of a flow takes. */
export async function settled(read: () => number): Promise<number> {
  for (let before = read(), quiet = 0; ;) {
    await pause(10);
    const now = read();
    quiet = now === before && now > 0 ? quiet + 1 : 0;
    if (quiet === 20) return now;
    before = now;
  }
}

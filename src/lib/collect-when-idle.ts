/**
 * Gives back what starting took. Loading, parsing and compiling leave some 15 MiB of free space on the heap of a thread,
 * and one without load would keep it for hours: the engine collects when it allocates, not when it rests, and shrinks the
 * space for new objects only once it has rested for a moment.
 */
import { Session } from "node:inspector";
import { performance } from "node:perf_hooks";

const LOOK_MS = 500;
/** Share of the time since the last look. */
const IDLE_BELOW = 0.05;
/** A thread that has work to do this long collects by itself. */
const LOOKS = 20;

/** Collects once, as soon as this thread has nothing to do: the collection stops it for some 30 ms. */
export function collectWhenIdle(): void {
  let before = performance.eventLoopUtilization();
  let looks = 0;
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    looks += 1;
    if (utilization < IDLE_BELOW) collect();
    if (utilization < IDLE_BELOW || looks === LOOKS) clearInterval(timer);
  }, LOOK_MS);
  timer.unref();
}

function collect(): void {
  const session = new Session();
  session.connect();
  // It is done by a task of its own: an end of the session before it would call it off, one inside of it stops the thread.
  session.post("HeapProfiler.collectGarbage", () => void setImmediate(() => session.disconnect()));
}

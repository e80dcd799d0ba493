/**
 * Frees the memory that the start of a thread has used. Loading, parsing and compiling leave about 15 MiB of free space
 * on the heap of a thread, and a thread without load would keep it for hours: V8 collects when it allocates and not
 * when it is idle, and it shrinks the young generation only after it has been idle for a moment.
 */
import { Session } from "node:inspector";
import { performance } from "node:perf_hooks";

const LOOK_MS = 500;
/** Share of the time since the last look in which the thread was busy. */
const IDLE_BELOW = 0.05;
/** Number of looks; a thread that is busy for this long collects without help. */
const LOOKS = 20;

/** Runs one garbage collection as soon as this thread is idle, because the collection stops it for about 30 ms. */
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
  // The collection runs as a task of its own. Disconnecting before it would cancel it, and within it would stop the
  // thread.
  session.post("HeapProfiler.collectGarbage", () => void setImmediate(() => session.disconnect()));
}

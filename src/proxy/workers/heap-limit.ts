/**
 * The largest heap of each worker of a data plane. Left alone, V8 lets every thread grow to half of the container's
 * memory, so that two busy ones are enough for the kernel to end the whole process. With a limit of its own, a thread
 * that runs out of memory ends alone and is replaced. `WorkerPool` sets it; `--max-old-space-size` of Node replaces it.
 */
import { totalmem } from "node:os";

/** The rest is for what lies outside of heaps: buffers of connections, code, stacks, and shared memory. */
const HEAP_SHARE = 0.75;
/** A thread needs about 40 MiB for the program alone. */
const MIN_MIB = 128;
/** V8 itself gives a heap no more. */
const MAX_MIB = 4_096;
const MIB = 1024 * 1024;

/**
 * @param workers number of threads that serve; the main thread counts as one more
 * @param memoryBytes of the container or of the machine
 * @returns MiB of the old generation of one worker
 */
export function heapLimitMib(workers: number, memoryBytes: number = availableMemory()): number {
  const share = Math.floor((memoryBytes * HEAP_SHARE) / MIB / (workers + 1));
  return Math.min(MAX_MIB, Math.max(MIN_MIB, share));
}

/** Returns the limit of the cgroup, where there is one, or the memory of the machine. */
function availableMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/**
 * Captures a profile of this thread with the inspector of V8, without opening its port. The paths below /debug/pprof use
 * it, in the main thread and in workers.
 */
import { Session } from "node:inspector/promises";
import { setTimeout as delay } from "node:timers/promises";
import { threadId } from "node:worker_threads";

export interface ProfileRequest {
  readonly kind: "cpu" | "heap";
  readonly seconds: number;
  /** Samples of the CPU per second. */
  readonly frequency: number;
}

/** A place in the code, counted from zero as V8 does. */
export interface ProfileFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** A call stack, innermost frame first, with its values: samples and nanoseconds, or objects and bytes. */
interface ProfileSample {
  readonly stack: readonly ProfileFrame[];
  readonly values: readonly [number, number];
}

export interface ThreadProfile {
  readonly thread: string;
  readonly samples: readonly ProfileSample[];
}

/** Average bytes between two samples of the heap, as V8 does by default. */
const HEAP_INTERVAL_BYTES = 32_768;

/** @param signal ends the profile early */
export async function captureProfile(request: ProfileRequest, signal?: AbortSignal): Promise<ThreadProfile> {
  const session = new Session();
  session.connect();
  try {
    const capture = request.kind === "cpu" ? captureCpu : captureHeap;
    const samples = await capture(session, request, signal);
    return { thread: String(threadId), samples };
  } finally {
    session.disconnect();
  }
}

interface CpuNode {
  readonly id: number;
  readonly callFrame: ProfileFrame;
  readonly children?: number[] | undefined;
}

async function captureCpu(
  session: Session,
  { seconds, frequency }: ProfileRequest,
  signal: AbortSignal | undefined,
): Promise<ProfileSample[]> {
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: Math.round(1_000_000 / frequency) });
  await session.post("Profiler.start");
  await waitFor(seconds, signal);
  const { profile } = await session.post("Profiler.stop");
  const { nodes, samples = [], timeDeltas = [] } = profile;
  const counts = new Map<number, [number, number]>();
  samples.forEach((id, at) => {
    const count = counts.get(id) ?? [0, 0];
    count[0]++;
    // A delta is the time since the sample before.
    count[1] += Math.max(0, timeDeltas[at] ?? 0) * 1_000;
    counts.set(id, count);
  });
  return stacksOf(nodes, counts);
}

async function waitFor(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(seconds * 1_000, undefined, { signal });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

function stacksOf(nodes: readonly CpuNode[], counts: ReadonlyMap<number, [number, number]>): ProfileSample[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map<number, CpuNode>();
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node);
  return [...counts].map(([id, values]) => {
    const stack: ProfileFrame[] = [];
    for (let node = byId.get(id); node !== undefined; node = parents.get(node.id)) stack.push(node.callFrame);
    return { stack: withoutRoot(stack), values };
  });
}

/** What the inspector answers; the types of Node leave out the numbers that join samples to nodes. */
interface HeapProfile {
  readonly head: HeapNode;
  readonly samples: readonly { readonly nodeId: number }[];
}

interface HeapNode {
  readonly callFrame: ProfileFrame;
  readonly id: number;
  readonly selfSize: number;
  readonly children: HeapNode[];
}

/** Samples allocations that are still alive at the end. */
async function captureHeap(
  session: Session,
  { seconds }: ProfileRequest,
  signal: AbortSignal | undefined,
): Promise<ProfileSample[]> {
  await session.post("HeapProfiler.enable");
  await session.post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL_BYTES });
  await waitFor(seconds, signal);
  const stopped = await session.post("HeapProfiler.stopSampling");
  // The protocol of the inspector says so (HeapProfiler.SamplingHeapProfile).
  const profile = stopped.profile as unknown as HeapProfile;
  const objects = new Map<number, number>();
  for (const { nodeId } of profile.samples) objects.set(nodeId, (objects.get(nodeId) ?? 0) + 1);
  const found: ProfileSample[] = [];
  collectHeap(profile.head, [], objects, found);
  return found;
}

function collectHeap(
  { callFrame, id, selfSize, children }: HeapNode,
  outer: readonly ProfileFrame[],
  objects: ReadonlyMap<number, number>,
  found: ProfileSample[],
): void {
  const stack = [callFrame, ...outer];
  if (selfSize > 0) found.push({ stack: withoutRoot(stack), values: [objects.get(id) ?? 0, selfSize] });
  for (const child of children) collectHeap(child, stack, objects, found);
}

/** The outermost frame is the root of the tree, which is no function. */
function withoutRoot(stack: readonly ProfileFrame[]): readonly ProfileFrame[] {
  return stack.length > 1 ? stack.slice(0, -1) : stack;
}

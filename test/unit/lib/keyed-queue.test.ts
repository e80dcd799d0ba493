import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeyedQueue, type KeyedQueue } from "../../../src/lib/keyed-queue.ts";

interface Job {
  readonly key: string;
  readonly value: number;
  done(): void;
  fail(): void;
}

/** A queue whose jobs the test ends by hand. */
function handQueue(concurrency = 2): { queue: KeyedQueue<number>; jobs: Job[]; waits: number[]; next(): Promise<Job> } {
  const jobs: Job[] = [];
  const waits: number[] = [];
  const takers: ((job: Job) => void)[] = [];
  const fresh: Job[] = [];
  const queue = createKeyedQueue<number>({
    concurrency,
    retryMs: { initial: 1, max: 4 },
    onFailure: (_, __, wait) => waits.push(wait),
    work: (key, value) =>
      new Promise((resolve, reject) => {
        const job = { key, value, done: resolve, fail: () => reject(new Error("failed")) };
        jobs.push(job);
        const taker = takers.shift();
        if (taker === undefined) fresh.push(job);
        else taker(job);
      }),
  });
  const next = (): Promise<Job> => {
    const job = fresh.shift();
    return job === undefined ? new Promise((resolve) => takers.push(resolve)) : Promise.resolve(job);
  };
  return { queue, jobs, waits, next };
}

test("while a key is worked on, only the last of the newer values is kept", async () => {
  const { queue, jobs, next } = handQueue();
  queue.put("a", 1);
  const first = await next();
  queue.put("a", 2);
  queue.put("a", 3);
  assert.equal(jobs.length, 1, "one key is never worked on twice at once");
  first.done();
  const second = await next();
  assert.equal(second.value, 3);
  second.done();
  await queue.idle();
  assert.equal(jobs.length, 2);
});

test("no more than the allowed number run at once, oldest first", async () => {
  const { queue, jobs, next } = handQueue(2);
  for (const key of ["a", "b", "c"]) queue.put(key, 1);
  assert.deepEqual(
    jobs.map(({ key }) => key),
    ["a", "b"],
  );
  (await next()).done();
  (await next()).done();
  (await next()).done();
  await queue.idle();
  assert.deepEqual(
    jobs.map(({ key }) => key),
    ["a", "b", "c"],
  );
});

test("a failure is tried again after growing waits until it succeeds", async () => {
  const { queue, waits, next } = handQueue();
  queue.put("a", 1);
  for (let failures = 0; failures < 4; failures++) (await next()).fail();
  (await next()).done();
  await queue.idle();
  assert.deepEqual(waits, [1, 2, 4, 4]);
});

test("a newer value does not wait for the failure of an older one", async () => {
  const { queue, waits, next } = handQueue();
  queue.put("a", 1);
  const first = await next();
  queue.put("a", 2);
  first.fail();
  const second = await next();
  assert.equal(second.value, 2);
  second.done();
  await queue.idle();
  assert.deepEqual(waits, [0]);
});

test("what was forgotten is not tried again", async () => {
  const { queue, jobs, next } = handQueue();
  queue.put("a", 1);
  (await next()).fail();
  queue.forget("a");
  await queue.idle();
  assert.equal(queue.has("a"), false);
  assert.equal(jobs.length, 1);
});

test("later work waits its turn and is dropped when the key is busy already", async () => {
  const { queue, jobs, next } = handQueue();
  queue.put("a", 1);
  queue.putLater("a", 2);
  (await next()).done();
  await queue.idle();
  assert.equal(jobs.length, 1);
  queue.putLater("a", 3);
  assert.equal(queue.has("a"), true);
  const later = await next();
  assert.equal(later.value, 3);
  later.done();
  await queue.idle();
});

test("stopping waits for the running work and starts nothing more", async () => {
  const { queue, jobs, next } = handQueue(1);
  queue.put("a", 1);
  queue.put("b", 1);
  const running = await next();
  const stopped = queue.stop();
  running.done();
  await stopped;
  queue.put("c", 1);
  assert.deepEqual(
    jobs.map(({ key }) => key),
    ["a"],
  );
});

/** The heap of each worker: all together leave room in the memory of the container. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { heapLimitMib } from "../../../../src/proxy/workers/heap-limit.ts";

const GIB = 1024 * 1024 * 1024;

test("the heaps of all workers fit into the memory, with room for what lies outside", () => {
  for (const [workers, gib, limit] of [
    [1, 2, 768],
    [2, 2, 512],
    [4, 4, 614],
    [7, 8, 768],
  ] as const) {
    assert.equal(heapLimitMib(workers, gib * GIB), limit);
    assert.ok(heapLimitMib(workers, gib * GIB) * workers < gib * 1024 * 0.75);
  }
});

test("a thread gets what the program takes in a small container, and no more than V8 gives in a large one", () => {
  assert.equal(heapLimitMib(8, GIB / 4), 128);
  assert.equal(heapLimitMib(1, 1024 * GIB), 4_096);
});

test("without a memory that is named the container's counts, or the machine's", () => {
  const limit = heapLimitMib(2);
  assert.ok(limit >= 128 && limit <= 4_096);
});

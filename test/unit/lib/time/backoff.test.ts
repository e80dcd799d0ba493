import assert from "node:assert/strict";
import { test } from "node:test";
import { createBackoff } from "../../../../src/lib/time/backoff.ts";

test("waits double up to the longest one and start anew after a reset", () => {
  const backoff = createBackoff({ initialMs: 500, maxMs: 10_000, random: () => 0 });
  const waits = Array.from({ length: 7 }, () => backoff.next());
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  backoff.reset();
  assert.equal(backoff.next(), 500);
});

test("jitter takes away at most half of a wait", () => {
  assert.equal(createBackoff({ initialMs: 100, maxMs: 100, random: () => 0.999_999 }).next() > 50, true);
  assert.equal(createBackoff({ initialMs: 100, maxMs: 100, random: () => 0.5 }).next(), 75);
});

test("an outage of any length keeps the longest wait", () => {
  const backoff = createBackoff({ initialMs: 1, maxMs: 10, random: () => 0 });
  for (let failures = 0; failures < 2000; failures++) backoff.next();
  assert.equal(backoff.next(), 10);
});

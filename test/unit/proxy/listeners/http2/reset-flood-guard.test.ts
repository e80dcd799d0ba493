import assert from "node:assert/strict";
import { test } from "node:test";
import { ResetFloodGuard } from "../../../../../src/proxy/listeners/http2/reset-flood-guard.ts";

function times(count: number, act: () => boolean): boolean[] {
  return Array.from({ length: count }, act);
}

test("a hundred resets in ten seconds are borne, and one more is not", () => {
  const calm = new ResetFloodGuard(0);
  assert.deepEqual([...new Set(times(100, () => calm.reset(9_000)))], [true]);
  assert.equal(calm.reset(9_999), false);
});

test("a new window begins with nothing", () => {
  const calm = new ResetFloodGuard(0);
  times(100, () => calm.reset(9_000));
  assert.equal(calm.reset(10_000), true);
});

test("a client that lets at least half be answered may reset as much as it likes", () => {
  const calm = new ResetFloodGuard(0);
  times(500, () => calm.answered(1));
  assert.deepEqual([...new Set(times(500, () => calm.reset(2)))], [true]);
  assert.equal(calm.reset(3), false);
});

test("five hundred frames that lead to nothing are borne, and one more is not", () => {
  const calm = new ResetFloodGuard(0);
  assert.deepEqual([...new Set(times(500, () => calm.idleFrame(1)))], [true]);
  assert.equal(calm.idleFrame(2), false);
});

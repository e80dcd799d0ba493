/** When a failure takes a member out of rotation, and for how long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BackendHealthSchema, type EvictionSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HealthRule } from "../../../../src/proxy/balancing/health.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

const CONDITION = "response.code == 503";

/** @returns milliseconds out of rotation after each of so many failures; 0: in it */
function after(
  failures: number,
  eviction: MessageInitShape<typeof EvictionSchema> | undefined,
  { hintMs, backoffMs = 0, condition = CONDITION }: { hintMs?: number; backoffMs?: number; condition?: string } = {},
): number[] {
  const deps = testMembers();
  const block = create(BackendHealthSchema, { unhealthyCondition: condition, ...(eviction && { eviction }) });
  const rule = new HealthRule(block, deps);
  const record = deps.record("a");
  return Array.from({ length: failures }, () => {
    rule.recordUnhealthy(record, hintMs, backoffMs);
    return (record.evictedUntilMs(deps.now) ?? deps.now) - deps.now;
  });
}

test("without limits the first failure evicts, for the duration, the hint, the back-off or three seconds", () => {
  assert.deepEqual(after(1, { durationMs: 700 }, { hintMs: 50, backoffMs: 60 }), [700]);
  assert.deepEqual(after(1, {}, { hintMs: 50, backoffMs: 60 }), [50]);
  assert.deepEqual(after(1, {}, { backoffMs: 60 }), [60]);
  assert.deepEqual(after(1, {}), [3000]);
});

test("without `eviction` only a hint or a back-off evicts, and without a condition nothing does", () => {
  assert.deepEqual(after(2, undefined), [0, 0]);
  assert.deepEqual(after(1, undefined, { hintMs: 50 }), [50]);
  assert.deepEqual(after(1, undefined, { backoffMs: 60 }), [60]);
  assert.deepEqual(after(5, { durationMs: 700 }, { hintMs: 50, condition: "" }), [0, 0, 0, 0, 0]);
});

test("failures in a row count with this one, and zero of them is never", () => {
  assert.deepEqual(after(3, { durationMs: 10, consecutiveFailures: 3 }), [0, 0, 10]);
  assert.deepEqual(after(5, { durationMs: 10, consecutiveFailures: 0 }), [0, 0, 0, 0, 0]);
});

test("the score counts as it was before the failure, and either limit is enough", () => {
  // 1, 0.7, 0.49, 0.343 before each.
  assert.deepEqual(after(4, { durationMs: 10, healthThreshold: 48 }), [0, 0, 0, 10]);
  assert.deepEqual(after(3, { durationMs: 10, healthThreshold: 50 }), [0, 0, 10]);
  assert.deepEqual(after(2, { durationMs: 10, healthThreshold: 90, consecutiveFailures: 50 }), [0, 10]);
  assert.deepEqual(after(2, { durationMs: 10, healthThreshold: 1, consecutiveFailures: 2 }), [0, 10]);
  assert.deepEqual(after(3, { durationMs: 10, healthThreshold: 0 }), [0, 0, 0]);
});

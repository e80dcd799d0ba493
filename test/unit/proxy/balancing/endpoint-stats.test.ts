/** The record of one endpoint: its figures, to the last digit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allocateSlots, SharedTable } from "../../../../src/lib/shared-table.ts";
import { EndpointStats } from "../../../../src/proxy/balancing/endpoint-stats.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

const NOW = 1_700_000_000_000;

test("health and latency are moving averages in which the newest sample weighs 0.3", () => {
  const record = testMembers().record("a");
  assert.deepEqual([record.health, record.latencySeconds, record.score], [1, 0, 1]);
  record.recordHealthy(2);
  assert.deepEqual([record.health, record.latencySeconds], [1, 2], "the first latency stands for itself");
  record.recordUnhealthy();
  assert.deepEqual([record.health, record.latencySeconds], [0.7, 2], "a failure says nothing about latency");
  record.recordHealthy(1);
  assert.deepEqual([record.health, record.latencySeconds], [0.3 + 0.7 * 0.7, 0.3 + 0.7 * 2]);
});

test("the score falls with latency, the more the more calls are in flight", () => {
  const record = testMembers().record("a");
  record.recordHealthy(2);
  assert.equal(record.score, 1 / 3);
  for (let calls = 0; calls < 5; calls++) record.begin();
  assert.deepEqual([record.pending, record.total, record.score], [5, 5, 1 / (1 + 2 * 1.5)]);
  for (let calls = 0; calls < 5; calls++) record.end();
  assert.deepEqual([record.pending, record.total, record.score], [0, 5, 1 / 3]);
});

test("each eviction lasts longer than the one before, and a healthy answer starts over", () => {
  const record = testMembers().record("a");
  record.begin();
  assert.deepEqual([record.recordUnhealthy(), record.recordUnhealthy()], [1, 2]);
  record.evict(1000, undefined, NOW);
  assert.deepEqual([record.evictions, record.evictedUntilMs(NOW)], [1, NOW + 1000]);
  record.evict(9000, undefined, NOW + 500);
  assert.equal(record.evictedUntilMs(NOW + 999), NOW + 1000, "one that is out stays no longer");
  assert.equal(record.isEvicted(NOW + 1000), false);
  record.evict(1000, undefined, NOW + 2000);
  assert.deepEqual([record.evictions, record.evictedUntilMs(NOW + 2000)], [2, NOW + 4000]);
  record.recordHealthy(0.1);
  assert.deepEqual([record.failures, record.evictions], [0, 0]);
  assert.equal(record.isEvicted(NOW + 3999), true, "a good answer does not end the eviction");
  assert.equal(record.isEvicted(NOW + 4000), false);
  record.evict(1000, undefined, NOW + 5000);
  assert.equal(record.evictedUntilMs(NOW + 5000), NOW + 6000);
});

test("an endpoint returns with the health that was said, or with its own", () => {
  const record = testMembers().record("a");
  record.recordUnhealthy();
  record.evict(1000, 0.5, NOW);
  assert.equal(record.health, 0.7);
  assert.deepEqual([record.isEvicted(NOW + 1000), record.health], [false, 0.5]);
  record.recordUnhealthy();
  record.evict(1000, undefined, NOW + 1000);
  assert.deepEqual([record.isEvicted(NOW + 9000), record.health], [false, 0.35]);
  record.evict(1000, 0, NOW + 9000);
  assert.deepEqual([record.isEvicted(NOW + 90_000), record.health], [false, 0]);
  record.recordHealthy(0.1);
  assert.equal(record.health, 1, "the average starts anew from zero");
});

test("threads see one record, and an endpoint that returns finds its own", () => {
  const memory = allocateSlots(64, 2);
  const [here, there] = [new SharedTable(memory, 0), new SharedTable(memory, 1)];
  const mine = new EndpointStats(here, "a");
  const yours = new EndpointStats(there, "a");
  mine.begin();
  mine.recordUnhealthy();
  mine.evict(1000, undefined, NOW);
  yours.begin();
  assert.deepEqual([yours.health, yours.pending, yours.total, yours.evictedUntilMs(NOW)], [0.7, 2, 2, NOW + 1000]);
  yours.close();
  mine.close();
  mine.recordUnhealthy();
  mine.end();
  yours.end();
  const again = new EndpointStats(there, "a");
  assert.deepEqual([again.health, again.pending, again.failures, again.evictions], [0.7 * 0.7, 0, 2, 1]);
});

test("a call that begins on a record that was let go of still counts where it belongs", () => {
  const members = testMembers();
  const old = members.record("a");
  old.close();
  old.begin();
  const current = members.record("a");
  assert.equal(current.pending, 1);
  old.recordUnhealthy();
  old.end();
  assert.deepEqual([current.pending, current.health], [0, 0.7]);
});

test("calls of an endpoint that has left are taken off the slot that they were counted on, in a full table too", () => {
  const slots = SharedTable.alone(1);
  const other = slots.claim("other");
  const stats = new EndpointStats(slots, "gone");
  stats.begin();
  stats.close();
  other.release();
  stats.begin();
  assert.equal(stats.pending, 2);
  stats.end();
  assert.equal(stats.pending, 1);
  stats.end();
  assert.equal(stats.pending, 0);
});

/** The choice among members: two draws, capacities, rotation, affinity, and what failed already. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashKey, hashEndpoint } from "../../../../src/proxy/balancing/affinity.ts";
import {
  PriorityLevel,
  pickEndpoint,
  type BalancedEndpoint,
  type PickOptions,
} from "../../../../src/proxy/balancing/pick.ts";
import { testMembers, type TestMembers } from "../../../support/gateway/endpoints.ts";

interface Named extends BalancedEndpoint {
  readonly name: string;
}

function bucket(deps: TestMembers, capacities: Readonly<Record<string, number>>): PriorityLevel<Named> {
  return new PriorityLevel(
    Object.entries(capacities).map(([name, capacity]) => ({
      name,
      capacity,
      record: deps.record(name),
      hash: hashEndpoint(name),
    })),
  );
}

function member(of: PriorityLevel<Named>, name: string): Named {
  const found = of.members.find((each) => each.name === name);
  assert.ok(found);
  return found;
}

/** How often each member is chosen. */
function shares(
  buckets: readonly PriorityLevel<Named>[],
  deps: TestMembers,
  times: number,
  wish?: PickOptions,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let at = 0; at < times; at++) {
    const name = pickEndpoint(buckets, deps, wish)?.name ?? "none";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

function near(actual: number | undefined, expected: number, tolerance: number): void {
  assert.ok(Math.abs((actual ?? 0) - expected) <= tolerance, `${actual} is not ${expected} ± ${tolerance}`);
}

test("equal members share the load equally", () => {
  const deps = testMembers();
  const counts = shares([bucket(deps, { a: 1, b: 1, c: 1, d: 1 })], deps, 20_000);
  for (const name of ["a", "b", "c", "d"]) near(counts[name], 5000, 250);
});

test("the better of two draws serves, so the worst of three is chosen only when it is drawn twice", () => {
  const deps = testMembers();
  const all = bucket(deps, { good: 1, fair: 1, bad: 1 });
  member(all, "fair").record.recordHealthy(1);
  member(all, "bad").record.recordUnhealthy();
  member(all, "bad").record.recordUnhealthy();
  const counts = shares([all], deps, 18_000);
  near(counts["bad"], 2000, 200);
  near(counts["fair"], 6000, 300);
  near(counts["good"], 10_000, 300);
});

test("capacities weigh the draws, and none of it means no load", () => {
  const deps = testMembers();
  const counts = shares([bucket(deps, { small: 1, large: 3, drained: 0 })], deps, 16_000);
  assert.equal(counts["drained"], undefined);
  // Of two draws with chances 1/4 and 3/4 a tie goes to the first.
  near(counts["small"], 4000, 300);
  near(counts["large"], 12_000, 300);
});

test("members out of rotation get nothing while another one is in it, and all of it when none is", () => {
  const deps = testMembers();
  const all = bucket(deps, { a: 1, b: 1, c: 1 });
  member(all, "a").record.evict(1000, undefined, deps.now);
  const counts = shares([all], deps, 10_000);
  assert.equal(counts["a"], undefined);
  near(counts["b"], 5000, 250);
  member(all, "b").record.evict(1000, undefined, deps.now);
  assert.deepEqual(shares([all], deps, 50), { c: 50 });
  member(all, "c").record.recordUnhealthy();
  member(all, "c").record.evict(1000, undefined, deps.now);
  member(all, "a").record.recordUnhealthy();
  assert.deepEqual(shares([all], deps, 50), { b: 50 }, "the best score of those that are out");
  deps.now += 1000;
  assert.equal(Object.keys(shares([all], deps, 200)).length, 3);
});

test("the nearest bucket with a member in rotation serves; one with drained members alone is passed over", () => {
  const deps = testMembers();
  const near = bucket(deps, { near: 1 });
  const far = bucket(deps, { far: 1 });
  assert.deepEqual(shares([near, far], deps, 50), { near: 50 });
  member(near, "near").record.evict(1000, undefined, deps.now);
  assert.deepEqual(shares([near, far], deps, 50), { far: 50 });
  member(far, "far").record.evict(1000, undefined, deps.now);
  assert.deepEqual(shares([near, far], deps, 50), { near: 50 });
  const drained = bucket(deps, { drained: 0, out: 1 });
  member(drained, "out").record.evict(1000, undefined, deps.now);
  assert.deepEqual(
    shares([drained, far], deps, 50),
    { far: 50 },
    "the evicted one beside a drained one is passed over too",
  );
  assert.deepEqual(shares([bucket(deps, { drained: 0 })], deps, 1), { none: 1 });
  assert.deepEqual(shares([], deps, 1), { none: 1 });
});

test("a member that failed the request is left out while another one is in rotation, in a farther bucket too", () => {
  const deps = testMembers();
  const near = bucket(deps, { a: 1, b: 1 });
  const far = bucket(deps, { c: 1 });
  const [a, b, c] = [member(near, "a"), member(near, "b"), member(far, "c")];
  assert.deepEqual(shares([near, far], deps, 50, { affinity: undefined, tried: [a] }), { b: 50 });
  assert.deepEqual(shares([near, far], deps, 50, { affinity: undefined, tried: [a, b] }), { c: 50 });
  const all = shares([near, far], deps, 200, { affinity: undefined, tried: [a, b, c] });
  assert.deepEqual(Object.keys(all).toSorted(), ["a", "b"]);
  b.record.evict(1000, undefined, deps.now);
  c.record.evict(1000, undefined, deps.now);
  assert.deepEqual(
    shares([near, far], deps, 50, { affinity: undefined, tried: [a] }),
    { a: 50 },
    "out is not available",
  );
  a.record.evict(1000, undefined, deps.now);
  assert.deepEqual(shares([near], deps, 50, { affinity: undefined, tried: [a] }), { b: 50 });
});

test("a session keeps its member, and one that goes moves its own sessions alone", () => {
  const deps = testMembers();
  const names = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`10.0.0.${at}:80`, 1]));
  const whole = bucket(deps, names);
  const of = (all: PriorityLevel<Named>, key: string): string | undefined =>
    pickEndpoint([all], deps, { affinity: hashKey(key), tried: undefined })?.name;
  const keys = Array.from({ length: 3000 }, (_, at) => `session-${at}`);
  const before = new Map(keys.map((key) => [key, of(whole, key)]));
  const perMember = Map.groupBy(keys, (key) => before.get(key));
  for (const list of perMember.values()) near(list.length, 300, 60);
  delete names["10.0.0.3:80"];
  const smaller = bucket(deps, names);
  for (const key of keys)
    if (before.get(key) !== "10.0.0.3:80") assert.equal(of(smaller, key), before.get(key), key);
    else assert.notEqual(of(smaller, key), "10.0.0.3:80");
});

test("capacities weigh sessions as well, and a drained member keeps none", () => {
  const deps = testMembers();
  const all = bucket(deps, { small: 1, large: 3, drained: 0 });
  const counts: Record<string, number> = {};
  for (let at = 0; at < 8000; at++) {
    const name = pickEndpoint([all], deps, { affinity: hashKey(`session-${at}`), tried: undefined })?.name ?? "none";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  assert.equal(counts["drained"], undefined);
  near(counts["small"], 2000, 200);
  near(counts["large"], 6000, 200);
});

test("a session leaves a member that is out of rotation or failed, and returns to it; all buckets come before the evicted", () => {
  const deps = testMembers();
  const near = bucket(deps, { a: 1, b: 1 });
  const far = bucket(deps, { c: 1 });
  const affinity = hashKey("alice");
  const of = (tried?: Named[]): string | undefined => pickEndpoint([near, far], deps, { affinity, tried })?.name;
  const own = of();
  const other = own === "a" ? "b" : "a";
  assert.equal(of([member(near, own ?? "")]), other);
  member(near, own ?? "").record.evict(1000, undefined, deps.now);
  assert.equal(of(), other);
  member(near, other).record.evict(2000, undefined, deps.now);
  assert.equal(of(), "c");
  member(far, "c").record.evict(2000, undefined, deps.now);
  assert.equal(of(), own);
  deps.now += 1000;
  assert.equal(of(), own);
});

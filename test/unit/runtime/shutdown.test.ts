import assert from "node:assert/strict";
import { test } from "node:test";
import { createShutdown, drainTimes } from "../../../src/runtime/shutdown.ts";
import { testClock } from "../../support/gateway/test-clock.ts";

const NOTHING = { min: undefined, max: undefined, grace: undefined };

test("the maximum is what is said, else some seconds before the system ends the process, else five seconds", () => {
  const maxOf = (given: Partial<Parameters<typeof drainTimes>[0]>): number =>
    drainTimes({ ...NOTHING, ...given }).maxMs;
  assert.equal(maxOf({}), 5_000);
  assert.equal(maxOf({ max: 90, grace: 30 }), 90_000);
  assert.equal(maxOf({ grace: 60 }), 55_000);
  assert.equal(maxOf({ grace: 11 }), 6_000);
  assert.equal(maxOf({ grace: 10 }), 9_000);
  assert.equal(maxOf({ grace: 1 }), 1_000);
});

test("the minimum is nothing unless it is said, and never longer than the maximum", () => {
  assert.equal(drainTimes(NOTHING).minMs, 0);
  assert.equal(drainTimes({ ...NOTHING, min: 3 }).minMs, 3_000);
  assert.equal(drainTimes({ ...NOTHING, min: 30, max: 10 }).minMs, 10_000);
});

function scene(times: { minMs: number; maxMs: number }) {
  const events: string[] = [];
  const clock = testClock();
  const empty = Promise.withResolvers<void>();
  const proxy = {
    announce: () => void events.push("announced"),
    drain() {
      events.push("draining");
      return empty.promise;
    },
  };
  const shutdown = createShutdown({ proxy, times, clock, begun: () => void events.push("not ready") });
  return { events, clock, empty, shutdown };
}

test("readiness fails first, connections are told at once, accepting ends at the minimum, waiting with the last one", async () => {
  const { events, clock, empty, shutdown } = scene({ minMs: 1_000, maxMs: 5_000 });
  const over = shutdown.over().then(() => events.push("over"));
  assert.deepEqual(events, ["not ready", "announced"]);
  await clock.advance(999);
  assert.equal(events.length, 2);
  await clock.advance(1);
  await shutdown.accepted();
  assert.deepEqual(events.slice(2), ["draining"]);
  empty.resolve();
  await over;
  assert.equal(events.at(-1), "over");
});

test("at the maximum nothing is waited for any more, and a second word to stop begins nothing anew", async () => {
  const { events, clock, shutdown } = scene({ minMs: 0, maxMs: 5_000 });
  void shutdown.accepted();
  const over = shutdown.over();
  await clock.advance(5_000);
  await over;
  assert.deepEqual(events, ["not ready", "announced", "draining"]);
});

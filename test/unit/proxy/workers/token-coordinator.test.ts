import assert from "node:assert/strict";
import { test } from "node:test";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { createTokenBroker } from "../../../../src/proxy/workers/token-broker.ts";
import { TokenCoordinator } from "../../../../src/proxy/workers/token-coordinator.ts";

const REQUEST = { key: "k", marginMs: 60_000, fetchedAfterMs: undefined };

function setUp() {
  const clock = { nowMs: 1_000 };
  const coordinator = new TokenCoordinator(() => clock.nowMs);
  const broker = (thread: number) =>
    createTokenBroker(async (name, body) => {
      // The broker asks with the body that belongs to the name.
      if (name === "token") return (await coordinator.ask(thread, body as typeof REQUEST)) as never;
      const { key, outcome } = body as Parameters<Parameters<typeof createTokenBroker>[0]>[1] & {
        key: string;
        outcome: Parameters<TokenCoordinator["fetched"]>[2];
      };
      coordinator.fetched(thread, key, outcome);
      return undefined as never;
    });
  const token = (value: string) => ({ value, fetchedAtMs: clock.nowMs, expiresAtMs: clock.nowMs + 3_600_000 });
  return { clock, coordinator, broker, token };
}

test("of all threads one fetches, and a thread that asks later gets what came", async () => {
  const { broker, token, clock } = setUp();
  let calls = 0;
  const fetch = async () => {
    calls++;
    return token("t");
  };
  const got = await Promise.all([0, 1, 2].map((thread) => broker(thread).obtain(REQUEST, fetch)));
  assert.deepEqual([got.map(({ value }) => value), calls], [["t", "t", "t"], 1]);
  assert.equal((await broker(3).obtain(REQUEST, fetch)).value, "t");
  assert.equal(calls, 1);
  clock.nowMs += 3_540_000;
  await broker(3).obtain(REQUEST, fetch);
  assert.equal(calls, 2, "within the margin it is fetched again");
});

test("a renewal is served by a newer token, or fetches", async () => {
  const { broker, token, clock } = setUp();
  const first = await broker(0).obtain(REQUEST, async () => token("t1"));
  clock.nowMs += 10;
  const renewal = { ...REQUEST, fetchedAfterMs: first.fetchedAtMs };
  assert.equal((await broker(0).obtain(renewal, async () => token("t2"))).value, "t2");
  assert.equal((await broker(1).obtain(renewal, () => assert.fail("t2 is newer"))).value, "t2");
});

test("a failure reaches the threads that wait as it was, and is not kept", async () => {
  const { broker, token } = setUp();
  const failing = async () => {
    throw new ProxyError("request_invalid", { detail: "status 400", text: "the token was refused" });
  };
  const got = await Promise.allSettled([0, 1].map((thread) => broker(thread).obtain(REQUEST, failing)));
  for (const each of got) {
    assert.ok(each.status === "rejected" && each.reason instanceof ProxyError);
    assert.deepEqual([each.reason.code, each.reason.detail], ["request_invalid", "status 400"]);
  }
  assert.equal((await broker(1).obtain(REQUEST, async () => token("t"))).value, "t");
});

test("when the thread that fetches dies, the next one that waits fetches", async () => {
  const { coordinator, broker, token } = setUp();
  assert.deepEqual(coordinator.ask(0, REQUEST), { case: "fetch" });
  const next = broker(1).obtain(REQUEST, async () => token("t"));
  const last = broker(2).obtain(REQUEST, () => assert.fail("thread 1 fetches"));
  await new Promise(setImmediate);
  coordinator.forget(0);
  assert.deepEqual([(await next).value, (await last).value], ["t", "t"]);
  coordinator.fetched(0, "k", { case: "failure", failure: { code: "internal", detail: undefined, text: undefined } });
});

/** What is remembered of names, and when servers of names are asked again. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createResolver, type Resolver } from "../../../../../src/proxy/upstream/dial/dns.ts";
import type { FoundAddresses } from "../../../../../src/proxy/upstream/dial/lookup.ts";

interface Asked {
  readonly resolver: Resolver;
  readonly names: string[];
  nowMs: number;
  /** What the next look-ups find; an Error: nobody could say. */
  finds: FoundAddresses | Error;
}

function open(t: TestContext, finds: Asked["finds"]): Asked {
  const names: string[] = [];
  const asked: Asked = {
    names,
    finds,
    nowMs: 0,
    resolver: createResolver({
      nowMs: () => asked.nowMs,
      lookup: async (host) => {
        names.push(host);
        await Promise.resolve();
        if (asked.finds instanceof Error) throw asked.finds;
        return asked.finds;
      },
    }),
  };
  t.after(() => asked.resolver.close());
  return asked;
}

test("an address is nobody's name, with or without a zone", async (t) => {
  const asked = open(t, new Error("never"));
  assert.deepEqual(await asked.resolver.addresses("127.0.0.1"), ["127.0.0.1"]);
  assert.deepEqual(await asked.resolver.addresses("fe80::1%eth0"), ["fe80::1%eth0"]);
  assert.deepEqual(asked.names, []);
});

test("a name is asked for once, by however many, and its addresses take turns", async (t) => {
  const asked = open(t, { addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3"], ttlMs: 60_000 });
  await Promise.all([asked.resolver.addresses("a.test"), asked.resolver.addresses("a.test")]);
  assert.deepEqual(asked.names, ["a.test"]);
  assert.deepEqual(asked.resolver.addresses("a.test"), ["10.0.0.3", "10.0.0.1", "10.0.0.2"]);
  assert.deepEqual(asked.resolver.addresses("a.test"), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
});

test("a name without an address is not asked for again within a second", async (t) => {
  const asked = open(t, { addresses: [], ttlMs: 1_000 });
  await assert.rejects(async () => asked.resolver.addresses("a.test"), /no address/);
  asked.nowMs = 999;
  await assert.rejects(async () => asked.resolver.addresses("a.test"), /no address/);
  assert.equal(asked.names.length, 1);
  asked.nowMs = 1_000;
  asked.finds = { addresses: ["10.0.0.1"], ttlMs: 1_000 };
  assert.deepEqual(await asked.resolver.addresses("a.test"), ["10.0.0.1"]);
});

test("look-ups that fail wait 100 ms, then twice as long each time, and never more than 5 s", async (t) => {
  const asked = open(t, new Error("server down"));
  const ask = () => assert.rejects(async () => asked.resolver.addresses("a.test"), /server down/);
  await ask();
  for (const waitMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
    const tries = asked.names.length;
    asked.nowMs += waitMs - 1;
    await ask();
    assert.equal(asked.names.length, tries, `asked before ${waitMs} ms were over`);
    asked.nowMs += 1;
    await ask();
    assert.equal(asked.names.length, tries + 1, `not asked after ${waitMs} ms`);
  }
});

test("more names than a limit are not remembered, and those that are keep working", async (t) => {
  const asked = open(t, { addresses: ["10.0.0.1"], ttlMs: 300_000 });
  for (let at = 0; at < 16_384; at++) await asked.resolver.addresses(`${at}.test`);
  await assert.rejects(async () => asked.resolver.addresses("one-more.test"), /too many names/);
  assert.deepEqual(await asked.resolver.addresses("0.test"), ["10.0.0.1"]);
});

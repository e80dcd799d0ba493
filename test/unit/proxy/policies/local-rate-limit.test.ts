import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import {
  LimitKind,
  LocalRateLimitSchema,
  type LocalRateLimitRuleSchema,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { allocateSlots, SharedTable } from "../../../../src/lib/shared-table.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { localRateLimit } from "../../../../src/proxy/policies/local-rate-limit.ts";
import type { PolicyDeps } from "../../../../src/proxy/policies/policy.ts";
import { makeDeps, makeExchange, makeReply, type TestExchange } from "../../../support/gateway/exchange.ts";

type Rule = MessageInitShape<typeof LocalRateLimitRuleSchema>;

/** A limiter with a clock that the test moves. */
function limiter(rules: Rule[]): {
  deps: PolicyDeps;
  advance(ms: number): void;
  /** @returns the exchange and whether it passed */
  call(headers?: readonly string[]): { passed: boolean; exchange: TestExchange };
  reconfigure(rules: Rule[]): void;
} {
  let now = 0;
  const deps = makeDeps({ nowMs: () => now });
  const compile = (specs: Rule[]): ReturnType<typeof localRateLimit.compile> =>
    localRateLimit.compile(
      create(LocalRateLimitSchema, {
        rules: specs.map((rule) => ({ kind: LimitKind.REQUESTS, unitMs: 1000, ...rule })),
      }),
      deps,
    );
  let middleware = compile(rules);
  return {
    deps,
    advance: (ms) => (now += ms),
    reconfigure: (specs) => (middleware = compile(specs)),
    call(headers = []) {
      const exchange = makeExchange({ headers });
      return { exchange, passed: passed(() => middleware(exchange, () => makeReply())) };
    },
  };
}

function passed(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === "rate_limited");
    return false;
  }
}

function rateHeaders({ queuedHeaders }: TestExchange): (string | undefined)[] {
  return ["limit", "remaining", "reset"].map((name) => queuedHeaders.get(`x-ratelimit-${name}`));
}

test("base plus burst pass at once, then nothing until the unit is over, then the base again", () => {
  const { call, advance } = limiter([{ limit: 2, burst: 1 }]);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => call().passed),
    [true, true, true, false],
  );
  advance(999);
  assert.equal(call().passed, false);
  advance(1);
  assert.deepEqual(
    [1, 2, 3].map(() => call().passed),
    [true, true, false],
  );
});

test("the time until the reset is never longer than the unit, however the clock is read", () => {
  // A clock with fractions that moves between two readings, as the real one does.
  let now = 12_345.678;
  const deps = makeDeps({ nowMs: () => (now += 0.1) });
  const rules = [{ kind: LimitKind.REQUESTS, limit: 1000, unitMs: 3_600_000 }];
  const middleware = localRateLimit.compile(create(LocalRateLimitSchema, { rules }), deps);
  for (let turn = 0; turn < 100; turn++) {
    const exchange = makeExchange({ headers: [] });
    void middleware(exchange, () => makeReply());
    assert.equal(rateHeaders(exchange)[2], "3600");
  }
});

test("an idle limiter fills up to its capacity and no further", () => {
  const { call, advance } = limiter([{ limit: 1, burst: 1 }]);
  advance(60_000);
  assert.deepEqual(
    [1, 2, 3].map(() => call().passed),
    [true, true, false],
  );
});

test("answers and refusals say limit, remaining and seconds to the refill", () => {
  const { call, advance } = limiter([{ limit: 1, burst: 1, unitMs: 60_000 }]);
  assert.deepEqual(rateHeaders(call().exchange), ["2", "1", "60"]);
  advance(500);
  assert.deepEqual(rateHeaders(call().exchange), ["2", "0", "60"]);
  advance(58_500);
  assert.deepEqual(rateHeaders(call().exchange), ["2", "0", "1"]);
});

test("the entry with the least remaining is reported", () => {
  const { call } = limiter([{ limit: 100 }, { limit: 5 }]);
  assert.deepEqual(rateHeaders(call().exchange), ["5", "4", "1"]);
});

test("a request that one entry refuses takes nothing from the others", () => {
  const { call, advance } = limiter([{ limit: 2, unitMs: 60_000 }, { limit: 1 }]);
  assert.deepEqual(
    [1, 2, 3].map(() => call().passed),
    [true, false, false],
  );
  advance(1000);
  assert.equal(call().passed, true);
});

test("each key has its own bucket, and all failures share one", () => {
  const { call } = limiter([{ limit: 1, key: 'request.headers["x-user"]' }]);
  assert.equal(call(["x-user", "a"]).passed, true);
  assert.equal(call(["x-user", "b"]).passed, true);
  assert.equal(call(["x-user", "a"]).passed, false);
  assert.deepEqual([call().passed, call().passed], [true, false]);
});

test("the key of failures cannot be chosen by a client", () => {
  const { call } = limiter([{ limit: 1, key: 'request.headers["x-user"]' }]);
  assert.equal(call().passed, true);
  for (const forged of ["", "undefined", "Symbol(key could not be evaluated)"]) {
    assert.equal(call(["x-user", forged]).passed, true);
  }
});

test("the table of keys is bounded and forgets the least recently used", () => {
  const { call, deps } = limiter([{ limit: 1, unitMs: 3_600_000, key: 'request.headers["x-user"]' }]);
  call(["x-user", "first"]);
  for (let n = 0; n < 9_999; n++) call(["x-user", `u${n}`]);
  assert.equal(deps.slots.used(), 10_000);
  assert.equal(call(["x-user", "first"]).passed, false);
  call(["x-user", "one more"]);
  assert.equal(deps.slots.used(), 10_000);
  assert.equal(call(["x-user", "first"]).passed, false);
});

test("threads that share memory share their limits", () => {
  const buffer = allocateSlots(64, 2);
  let now = 0;
  const [one, other] = [0, 1].map((thread) => {
    const deps = makeDeps({ nowMs: () => now, slots: new SharedTable(buffer, thread) });
    const rules = [
      { kind: LimitKind.REQUESTS, limit: 3, unitMs: 1000 },
      { kind: LimitKind.TOKENS, limit: 10, unitMs: 5000 },
    ];
    const middleware = localRateLimit.compile(create(LocalRateLimitSchema, { rules }), deps);
    return (): TestExchange | undefined => {
      const exchange = makeExchange({});
      return passed(() => middleware(exchange, () => makeReply())) ? exchange : undefined;
    };
  });
  assert.ok(one && other);
  const exchanges = [one(), other(), one(), other()];
  assert.deepEqual(
    exchanges.map((exchange) => exchange !== undefined),
    [true, true, true, false],
  );
  exchanges[0]?.tokenGates[0]?.settle(10);
  now = 1000;
  const gate = other()?.tokenGates[0];
  assert.equal(
    passed(() => gate?.admit()),
    false,
  );
  // Both refill at the same time, and only once.
  now = 2000;
  assert.deepEqual(
    [one, other, one, other].map((call) => call() !== undefined),
    [true, true, true, false],
  );
});

test("a policy that goes gives its slots back, and requests that it still serves hold none", () => {
  const deps = makeDeps();
  let kept: { close(): void } | undefined;
  const keep: PolicyDeps["keep"] = (_, make) => {
    const made = make();
    kept = made;
    return made;
  };
  const rules = [{ kind: LimitKind.REQUESTS, limit: 1, unitMs: 1000, key: "request.path" }];
  const middleware = localRateLimit.compile(create(LocalRateLimitSchema, { rules }), { ...deps, keep });
  void middleware(makeExchange({}), () => makeReply());
  assert.equal(deps.slots.used(), 1);
  kept?.close();
  assert.equal(deps.slots.used(), 0);
  void middleware(makeExchange({}), () => makeReply());
  assert.equal(deps.slots.used(), 0);
});

test("a large capacity is counted exactly, one beyond all counting is bounded", () => {
  const [large, all] = [2 ** 31 - 1, 2 ** 32 - 1];
  const exact = rateHeaders(limiter([{ limit: large, burst: large }]).call().exchange);
  assert.deepEqual(exact, [String(2 * large), String(2 * large - 1), "1"]);
  const bounded = rateHeaders(limiter([{ limit: all, burst: all }]).call().exchange);
  assert.deepEqual(bounded, [String(all - 1), String(all - 2), "1"]);
});

/** What is left after one more request, or undefined when it was refused. */
function left({ call }: Pick<ReturnType<typeof limiter>, "call">): number | undefined {
  const { passed: isPassed, exchange } = call();
  return isPassed ? Number(exchange.queuedHeaders.get("x-ratelimit-remaining")) : undefined;
}

const HOUR = 3_600_000;

test("what was used stays used, however often the limit changes", () => {
  const limit = limiter([{ limit: 10, unitMs: HOUR }]);
  assert.equal(left(limit), 9);
  for (const [change, remaining] of [
    [{ limit: 3 }, 1],
    [{ limit: 1000 }, 997],
    [{ limit: 1000, burst: 50 }, 1046],
    [{ limit: 2 }, undefined],
    [{ limit: 5 }, 0],
    [{ limit: 6 }, 0],
    [{ limit: 6 }, undefined],
    [{ limit: 100 }, 93],
  ] as const) {
    limit.reconfigure([{ unitMs: HOUR, ...change }]);
    assert.equal(left(limit), remaining, JSON.stringify(change));
  }
});

test("a lowered limit is whole again after its unit, and what was used is gone after it", () => {
  const limit = limiter([{ limit: 10, unitMs: HOUR }]);
  for (let count = 0; count < 9; count++) left(limit);
  limit.reconfigure([{ limit: 3, unitMs: HOUR }]);
  assert.equal(left(limit), undefined);
  limit.advance(HOUR);
  assert.equal(left(limit), 2);
  limit.reconfigure([{ limit: 10, unitMs: HOUR }]);
  assert.equal(left(limit), 8);
});

test("a unit that changes begins anew, and what was used stays used in it", () => {
  const limit = limiter([{ limit: 10, unitMs: HOUR }]);
  for (let count = 0; count < 8; count++) left(limit);
  limit.advance(HOUR / 2);
  limit.reconfigure([{ limit: 10, unitMs: 60_000 }]);
  assert.equal(left(limit), 1);
  assert.equal(limit.call().exchange.queuedHeaders.get("x-ratelimit-reset"), "60");
  assert.equal(left(limit), undefined);
  limit.advance(60_000);
  assert.equal(left(limit), 9);
  limit.reconfigure([{ limit: 10, unitMs: HOUR }]);
  assert.equal(left(limit), 8);
  limit.advance(HOUR - 1);
  assert.equal(left(limit), 7);
  limit.advance(1);
  assert.equal(left(limit), 9);
});

test("rules that come and go leave the others what was used", () => {
  const user = { limit: 5, unitMs: HOUR, key: "request.path" };
  const tokens = { limit: 5, unitMs: HOUR, kind: LimitKind.TOKENS };
  const limit = limiter([
    { limit: 5, unitMs: HOUR },
    { limit: 90, unitMs: 60_000 },
  ]);
  left(limit);
  for (const [rules, remaining] of [
    [[user, { limit: 5, unitMs: HOUR }, tokens], 3],
    [[tokens, { limit: 5, unitMs: HOUR, burst: 1 }], 3],
    [[{ limit: 5, unitMs: HOUR }, { limit: 90, unitMs: 60_000 }, user], 1],
  ] as const) {
    limit.reconfigure([...rules]);
    assert.equal(left(limit), remaining);
  }
  limit.reconfigure([
    { limit: 9000, unitMs: HOUR },
    { limit: 90, unitMs: 60_000 },
  ]);
  assert.equal(left(limit), 87, "the second rule that counts requests kept its own");
});

test("tokens that were used stay used, those beyond the limit too", () => {
  const tokens = (limit: number) => [{ limit, unitMs: HOUR, kind: LimitKind.TOKENS }];
  const limit = limiter(tokens(10));
  limit.call().exchange.tokenGates[0]?.settle(25);
  limit.reconfigure(tokens(3));
  assert.deepEqual(rateHeaders(limit.call().exchange).slice(0, 2), ["3", "0"]);
  limit.reconfigure(tokens(1000));
  assert.deepEqual(rateHeaders(limit.call().exchange).slice(0, 2), ["1000", "975"]);
});

test("threads that hear of a change one after the other count together all the time", () => {
  const buffer = allocateSlots(64, 2);
  const now = 0;
  const threads = [0, 1].map((thread) => {
    const deps = makeDeps({ nowMs: () => now, slots: new SharedTable(buffer, thread) });
    return (limit: number, unitMs: number) => {
      const rules = [{ kind: LimitKind.REQUESTS, limit, unitMs }];
      const middleware = localRateLimit.compile(create(LocalRateLimitSchema, { rules }), deps);
      return (): boolean => passed(() => middleware(makeExchange(), () => makeReply()));
    };
  });
  const [one, other] = threads.map((compile) => compile(10, HOUR));
  assert.ok(one && other);
  assert.deepEqual([one(), other(), one(), other()], [true, true, true, true]);
  const changed = threads[0]?.(5, HOUR);
  assert.deepEqual([changed?.(), changed?.(), other(), other()], [true, false, true, true]);
  const [later, lastly] = threads.map((compile) => compile(8, 60_000));
  assert.deepEqual([later?.(), lastly?.(), later?.()], [true, false, false]);
});

test("the request that crosses a token budget succeeds and the next is refused until the unit is over", () => {
  const { call, advance } = limiter([{ limit: 10, kind: LimitKind.TOKENS, unitMs: 60_000 }]);
  const first = call().exchange;
  assert.equal(first.tokenGates.length, 1);
  first.tokenGates[0]?.admit();
  first.tokenGates[0]?.settle(25);
  const second = call();
  assert.equal(second.passed, true);
  assert.equal(
    passed(() => second.exchange.tokenGates[0]?.admit()),
    false,
  );
  assert.deepEqual(rateHeaders(second.exchange), ["10", "0", "60"]);
  advance(60_000);
  const third = call().exchange;
  assert.equal(
    passed(() => third.tokenGates[0]?.admit()),
    true,
  );
  assert.deepEqual(rateHeaders(third), ["10", "10", "60"]);
});

test("request and token entries are independent", () => {
  const { call } = limiter([{ limit: 1 }, { limit: 100, kind: LimitKind.TOKENS }]);
  const first = call();
  first.exchange.tokenGates[0]?.settle(3);
  assert.equal(call().passed, false);
  assert.equal(first.exchange.tokenGates.length, 1);
});

test("a limit without amount, unit or kind is a configuration error", () => {
  for (const rule of [{ limit: 0 }, { limit: 1, unitMs: 0 }, { limit: 1, kind: LimitKind.UNSPECIFIED }]) {
    assert.throws(() => limiter([rule]), ConfigError);
  }
});

test("the first branch whose condition is true counts, and none means no limit", () => {
  const deps = makeDeps();
  const rule = { limit: 1, unitMs: 1000, kind: LimitKind.REQUESTS };
  const branches = [
    { condition: 'request.path == "/a"', rules: [rule] },
    { condition: 'request.path.startsWith("/")  && request.path != "/free"', rules: [{ ...rule, limit: 2 }] },
  ];
  const middleware = localRateLimit.compile(create(LocalRateLimitSchema, { branches }), deps);
  const call = (target: string): boolean => passed(() => middleware(makeExchange({ target }), () => makeReply()));
  assert.deepEqual([call("/a"), call("/a")], [true, false]);
  assert.deepEqual([call("/b"), call("/b"), call("/b")], [true, true, false]);
  assert.deepEqual([call("/free"), call("/free")], [true, true]);
});

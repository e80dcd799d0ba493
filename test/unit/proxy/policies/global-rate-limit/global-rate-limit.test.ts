import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  RateLimitResponse_Code as Code,
  RateLimitResponseSchema,
  type RateLimitRequest,
} from "../../../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import {
  GlobalRateLimitSchema,
  LimitKind,
  type RateDescriptorSchema,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../../src/lib/errors.ts";
import { CalloutError, type Callout } from "../../../../../src/proxy/callouts/callout.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { RoutedExchange } from "../../../../../src/proxy/exchange/exchange.ts";
import { globalRateLimit } from "../../../../../src/proxy/policies/global-rate-limit/global-rate-limit.ts";
import { makeDeps, makeExchange, makeReply, type TestExchange } from "../../../../support/gateway/exchange.ts";

type Descriptor = MessageInitShape<typeof RateDescriptorSchema>;

interface Run {
  /** Hits of each call's descriptors. */
  readonly hits: (bigint | undefined)[][];
  readonly run: (exchange: RoutedExchange) => Promise<number>;
}

/** The policy over a service that decides as told. */
function compile(descriptors: Descriptor[], decide: () => Code | Error = () => Code.OK, failOpen = false): Run {
  const hits: (bigint | undefined)[][] = [];
  const service = {
    path: "",
    invalidReason: undefined,
    unary(_method: unknown, request: RateLimitRequest) {
      hits.push(request.descriptors.map(({ hitsAddend }) => hitsAddend));
      const decision = decide();
      if (decision instanceof Error) return Promise.reject(decision);
      return Promise.resolve(create(RateLimitResponseSchema, { overallCode: decision }));
    },
  };
  // Only `unary` is ever called.
  const deps = makeDeps({ callout: () => service as unknown as Callout });
  const spec = create(GlobalRateLimitSchema, { branches: [{ domain: "d", failOpen, descriptors }] });
  const middleware = globalRateLimit.compile(spec, deps);
  return {
    hits,
    async run(exchange) {
      return (await middleware(exchange, () => makeReply({ status: 201 }))).status;
    },
  };
}

const ENTRIES = [{ name: "a", expression: "request.method" }];
const TOKENS: Descriptor = { entries: ENTRIES, kind: LimitKind.TOKENS };

async function admit(exchange: TestExchange): Promise<void> {
  for (const gate of exchange.tokenGates) await gate.admit();
}

function settle(exchange: TestExchange, tokens: number): void {
  for (const gate of exchange.tokenGates) gate.settle(tokens);
}

test("tokens are charged once, when both the usage and the answer are there, in whatever order", async () => {
  for (const settledFirst of [true, false]) {
    const { hits, run } = compile([TOKENS]);
    const exchange = makeExchange();
    const running = run(exchange);
    while (exchange.tokenGates.length === 0) await Promise.resolve();
    await admit(exchange);
    if (settledFirst) settle(exchange, 7);
    await running;
    if (!settledFirst) settle(exchange, 7);
    settle(exchange, 9);
    assert.deepEqual(hits, [[0n], [7n]]);
  }
});

test("an answer without usage costs nothing, whatever the cost would be", async () => {
  const { hits, run } = compile([{ ...TOKENS, cost: "5" }]);
  const exchange = makeExchange();
  await run(exchange);
  await admit(exchange);
  settle(exchange, 0);
  assert.deepEqual(hits, [[0n]]);
});

test("a charge that the service does not take hurts nobody", async () => {
  let calls = 0;
  const { run } = compile([TOKENS], () => (++calls === 1 ? Code.OK : new CalloutError("gone")));
  const exchange = makeExchange();
  assert.equal(await run(exchange), 201);
  await admit(exchange);
  settle(exchange, 3);
  assert.equal(calls, 2);
});

test("a budget that is used up refuses before anything is charged", async () => {
  const { hits, run } = compile([TOKENS], () => Code.OVER_LIMIT);
  const exchange = makeExchange();
  await run(exchange);
  await assert.rejects(admit(exchange), (error) => error instanceof ProxyError && error.status === 429);
  settle(exchange, 0);
  settle(exchange, 5);
  assert.deepEqual(hits, [[0n]]);
});

test("an answer that decides nothing is a failure of the service", async () => {
  const requests: Descriptor[] = [{ entries: ENTRIES, kind: LimitKind.REQUESTS }];
  const isFailure = (error: unknown): boolean => error instanceof ProxyError && error.code === "rate_limit_failed";
  await assert.rejects(compile(requests, () => Code.UNKNOWN).run(makeExchange()), isFailure);
  assert.equal(await compile(requests, () => Code.UNKNOWN, true).run(makeExchange()), 201);
  const misconfigured = new CalloutError("no such backend", { misconfigured: true });
  await assert.rejects(compile(requests, () => misconfigured, true).run(makeExchange()), isFailure);
});

test("costs are whole numbers from zero on", async () => {
  const costs = ["3", "3u", "0", "1.5", "-1", '"3"', "request.nothing"];
  const { hits, run } = compile(costs.map((cost) => ({ entries: ENTRIES, kind: LimitKind.REQUESTS, cost })));
  await run(makeExchange());
  assert.deepEqual(hits, [[3n, 3n, 0n]]);
});

test("a descriptor that counts nothing in particular is a configuration error", () => {
  assert.throws(() => compile([{ entries: ENTRIES }]), ConfigError);
});

test("a descriptor that does not compile ends the request, because otherwise nothing would be limited", async () => {
  const refused = (error: unknown): boolean => error instanceof ProxyError && error.code === "rate_limit_failed";
  const broken = [{ name: "a", expression: "response.code" }];
  for (const requests of [
    { entries: broken, kind: LimitKind.REQUESTS },
    { entries: ENTRIES, kind: LimitKind.REQUESTS, limitOverride: "request.nothing" },
  ]) {
    const { hits, run } = compile([requests]);
    await assert.rejects(run(makeExchange()), refused);
    assert.deepEqual(hits, []);
  }
  const { run } = compile([{ ...TOKENS, entries: broken }]);
  const exchange = makeExchange();
  await run(exchange);
  await assert.rejects(admit(exchange), refused);
});

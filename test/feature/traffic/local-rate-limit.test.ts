/** traffic.rateLimit.local through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { type Answer, call } from "../../support/clients/http.ts";
import { mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const LOCAL = "GwPolicy spec.traffic.rateLimit.local[]";

async function limited(context: ProofContext, rule: string): Promise<TestGateway> {
  const echo = await startEcho(context);
  const policy = routePolicy("limit", "web", `  traffic: {rateLimit: {local: [${rule}]}}`);
  return startWeb(context, echo.port, policy);
}

async function statuses(gateway: TestGateway, calls: readonly Record<string, string>[]): Promise<number[]> {
  const answers: Answer[] = [];
  for (const headers of calls) answers.push(await call(gateway.url(), { headers }));
  return answers.map((answer) => answer.status);
}

prove(
  [`${LOCAL}.requests`, `${LOCAL}.unit`],
  "the third request of a budget of two gets 429 and says when to come back",
  async (context) => {
    const gateway = await limited(context, "{requests: 2, unit: Hours}");
    const first = await call(gateway.url());
    assert.equal(first.status, 200);
    assert.equal(first.headers["x-ratelimit-limit"], "2");
    assert.equal(first.headers["x-ratelimit-remaining"], "1");
    assert.equal((await call(gateway.url())).status, 200);
    const refused = await call(gateway.url());
    assert.equal(refused.status, 429);
    assert.equal(refused.body, "rate limit exceeded");
    assert.equal(refused.headers["x-ratelimit-remaining"], "0");
    // The bucket is refilled at the end of its hour.
    assert.match(String(refused.headers["x-ratelimit-reset"]), /^3[56]\d\d$/);
    assert.equal(refused.headers["retry-after"], refused.headers["x-ratelimit-reset"]);
    assert.equal(first.headers["retry-after"], undefined);
  },
);

prove(`${LOCAL}.burst`, "a burst adds to the capacity of the bucket", async (context) => {
  const gateway = await limited(context, "{requests: 1, unit: Hours, burst: 2}");
  assert.deepEqual(await statuses(gateway, [{}, {}, {}, {}]), [200, 200, 200, 429]);
});

prove(`${LOCAL}.key`, "each value of the key has a bucket of its own", async (context) => {
  const gateway = await limited(context, `{requests: 1, unit: Hours, key: 'request.headers["x-user"]'}`);
  const calls = ["a", "b", "a", "b"].map((user) => ({ "x-user": user }));
  assert.deepEqual(await statuses(gateway, calls), [200, 200, 429, 429]);
});

prove(
  [
    "GwPolicy spec.traffic.rateLimit.conditional[].condition",
    "GwPolicy spec.traffic.rateLimit.conditional[].policy.local[].requests",
  ],
  "the first entry whose condition holds decides which budget is charged",
  async (context) => {
    const echo = await startEcho(context);
    const policy = routePolicy(
      "limit",
      "web",
      `  traffic:
    rateLimit:
      conditional:
        - condition: request.headers["x-tier"] == "free"
          policy: {local: [{requests: 1, unit: Hours}]}
        - policy: {local: [{requests: 2, unit: Hours}]}`,
    );
    const gateway = await startWeb(context, echo.port, policy);
    const free = { "x-tier": "free" };
    const paid = { "x-tier": "paid" };
    assert.deepEqual(await statuses(gateway, [free, free, paid, paid, paid]), [200, 429, 200, 200, 429]);
  },
);

prove(
  ["requests", "unit", "burst", "key"].map(
    (field) => `GwPolicy spec.traffic.rateLimit.conditional[].policy.local[].${field}`,
  ),
  "a conditional limit has keys and a burst, and its budget counts for its unit of time",
  async (context) => {
    const echo = await startEcho(context);
    const rule = `{requests: 1, burst: 1, unit: Hours, key: 'request.headers["x-user"]'}`;
    const limit = `{conditional: [{condition: 'request.headers["x-tier"] == "free"', policy: {local: [${rule}]}}]}`;
    const policy = routePolicy("limit", "web", `  traffic: {rateLimit: ${limit}}`);
    const gateway = await startWeb(context, echo.port, policy);
    const free = (user: string) => ({ "x-tier": "free", "x-user": user });
    const paid = { "x-tier": "paid" };
    assert.deepEqual(
      await statuses(gateway, [free("a"), free("a"), free("a"), free("b"), paid, paid, paid]),
      [200, 200, 429, 200, 200, 200, 200],
    );
    // Without the header that the condition reads the limit counts, in the bucket of keys that fail.
    assert.deepEqual(await statuses(gateway, [{}, {}, {}]), [200, 200, 429]);
    const refused = await call(gateway.url(), { headers: free("a") });
    // A whole budget of one in an hour: what is missing of it takes longer than a minute to come back.
    assert.ok(Number(refused.headers["x-ratelimit-reset"]) > 60, String(refused.headers["x-ratelimit-reset"]));
  },
);

prove(
  [],
  "what was used stays used when the limit changes, and when its policy goes and comes back",
  async (context) => {
    const echo = await startEcho(context);
    const withLimit = (traffic: string): string =>
      documents(
        GATEWAY,
        staticBackend("web", echo.port),
        route("web", "web"),
        ...(traffic === "" ? [] : [routePolicy("limit", "web", `  traffic: {${traffic}}`)]),
      );
    const local = (rule: string): string => `rateLimit: {local: [${rule}]}`;
    const gateway = await startGateway(context, withLimit(local("{requests: 10, unit: Hours}")));
    const remaining = async (): Promise<string> => String((await call(gateway.url())).headers["x-ratelimit-remaining"]);
    assert.equal(await remaining(), "9");
    for (const [traffic, expected] of [
      [local("{requests: 3, unit: Hours}"), "1"],
      [local("{requests: 1000, unit: Hours}"), "997"],
      [local("{requests: 1000, unit: Hours, burst: 5}"), "1001"],
      [local("{requests: 1000, unit: Minutes}"), "995"],
      [`${local("{requests: 1000, unit: Hours}")}, timeouts: {request: 5s}`, "994"],
      ["", "undefined"],
      [local("{requests: 1000, unit: Hours}"), "993"],
    ] as const) {
      await gateway.change(withLimit(traffic));
      assert.equal(await remaining(), expected, traffic);
    }
  },
);

/** Routes to a model provider under a limit. An answer costs 8 tokens. */
async function limitedModel(
  context: ProofContext,
  rateLimit: string,
): Promise<(headers?: Record<string, string>) => Promise<Answer>> {
  const provider = await startMockProvider(context);
  const backend = mockBackend(provider.port);
  const policy = routePolicy("limit", "ai", `  traffic: {rateLimit: ${rateLimit}}`);
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), policy));
  const messages = [
    { role: "system", content: "Be kind" },
    { role: "user", content: "hello there" },
  ];
  const body = JSON.stringify({ model: "mock", messages });
  return (headers = {}) =>
    call(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
}

prove(
  [`${LOCAL}.tokens`, `${LOCAL}.unit`],
  "the answer that crosses a budget of tokens still comes, the next one gets 429",
  async (context) => {
    const ask = await limitedModel(context, "{local: [{tokens: 10, unit: Hours}]}");
    const answers = [await ask(), await ask(), await ask()];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 429],
    );
    assert.equal(answers[0]?.headers["x-ratelimit-limit"], "10");
    // Six are missing, and ten an hour are one in six minutes.
    assert.ok(Number(answers[2]?.headers["x-ratelimit-reset"]) > 60);
  },
);

prove(
  "GwPolicy spec.traffic.rateLimit.conditional[].policy.local[].tokens",
  "a conditional budget of tokens is charged where its condition holds",
  async (context) => {
    const ask = await limitedModel(
      context,
      `{conditional: [{condition: 'request.headers["x-tier"] == "free"', policy: {local: [{tokens: 1, unit: Hours}]}}]}`,
    );
    const free = { "x-tier": "free" };
    const paid = { "x-tier": "paid" };
    const answers = [await ask(free), await ask(free), await ask(paid), await ask(paid)];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 429, 200, 200],
    );
  },
);

/** traffic.rateLimit.local through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../support/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend, type TestGateway } from "../support/gateway.ts";
import { type Answer, call } from "../support/http.ts";
import { prove, type ProofContext } from "../support/prove.ts";

const LOCAL = "GwPolicy spec.traffic.rateLimit.local[]";

async function limited(context: ProofContext, rule: string): Promise<TestGateway> {
  const echo = await startEcho(context);
  const policy = routePolicy("limit", "web", `  traffic: {rateLimit: {local: [${rule}]}}`);
  return startGateway(context, documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy));
}

async function statuses(gateway: TestGateway, calls: readonly Record<string, string>[]): Promise<number[]> {
  const answers: Answer[] = [];
  for (const headers of calls) answers.push(await call(gateway.url(), { headers }));
  return answers.map((answer) => answer.status);
}

prove([`${LOCAL}.requests`, `${LOCAL}.unit`], "the third request of a budget of two gets 429 and says when to come back", async (context) => {
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
  assert.match(String(refused.headers["x-ratelimit-reset"]), /^\d+$/);
});

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
  ["GwPolicy spec.traffic.rateLimit.conditional[].condition", "GwPolicy spec.traffic.rateLimit.conditional[].policy.local[].requests"],
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
    const gateway = await startGateway(context, documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy));
    const free = { "x-tier": "free" };
    const paid = { "x-tier": "paid" };
    assert.deepEqual(await statuses(gateway, [free, free, paid, paid, paid]), [200, 429, 200, 200, 429]);
  },
);

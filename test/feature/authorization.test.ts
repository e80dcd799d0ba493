/** traffic.authorization through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../support/echo.ts";
import { routePolicy, startWeb, type TestGateway } from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { prove, type ProofContext } from "../support/prove.ts";

const AUTHORIZATION = "GwPolicy spec.traffic.authorization";

async function guard(context: ProofContext, ...policies: readonly string[]): Promise<TestGateway> {
  const echo = await startEcho(context);
  const objects = policies.map((spec, at) => routePolicy(`p${at}`, "web", `  traffic: {authorization: ${spec}}`));
  return startWeb(context, echo.port, ...objects);
}

const team = (name: string) => ({ headers: { "x-team": name } });

prove(
  `${AUTHORIZATION}.policy.matchExpressions[]`,
  "one true expression of an Allow rule lets a request pass, none gives 403",
  async (context) => {
    const gateway = await guard(
      context,
      `{policy: {matchExpressions: ['request.headers["x-team"] == "a"', 'request.path == "/open"']}}`,
    );
    assert.equal((await call(gateway.url(), team("a"))).status, 200);
    assert.equal((await call(`${gateway.url()}/open`)).status, 200);
    const refused = await call(gateway.url(), team("b"));
    assert.equal(refused.status, 403);
    assert.equal(refused.body, "authorization failed");
  },
);

prove(`${AUTHORIZATION}.action`, "Deny refuses what is true and lets the rest pass", async (context) => {
  const gateway = await guard(
    context,
    `{action: Deny, policy: {matchExpressions: ['request.headers["x-team"] == "a"']}}`,
  );
  assert.equal((await call(gateway.url(), team("a"))).status, 403);
  assert.equal((await call(gateway.url(), team("b"))).status, 200);
});

prove(`${AUTHORIZATION}.action`, "Require refuses unless every expression is true", async (context) => {
  const gateway = await guard(
    context,
    `{action: Require, policy: {matchExpressions: ['request.headers["x-team"] == "a"', 'request.method == "GET"']}}`,
  );
  assert.equal((await call(gateway.url(), team("a"))).status, 200);
  assert.equal((await call(gateway.url(), { method: "POST", ...team("a") })).status, 403);
});

prove(
  [],
  "rules of several policies are evaluated together, and a failing expression counts as false",
  async (context) => {
    const gateway = await guard(
      context,
      `{policy: {matchExpressions: ['request.headers["x-team"] == "a"']}}`,
      `{policy: {matchExpressions: ['json(request.headers["x-json"]).ok == true']}}`,
      `{action: Deny, policy: {matchExpressions: ['request.method == "DELETE"']}}`,
    );
    assert.equal((await call(gateway.url(), team("a"))).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "x-json": '{"ok":true}' } })).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "x-json": "{" } })).status, 403);
    assert.equal((await call(gateway.url(), { method: "DELETE", ...team("a") })).status, 403);
  },
);

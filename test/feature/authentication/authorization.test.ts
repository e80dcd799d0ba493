/** traffic.authorization through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { routePolicy, startWeb, type TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { gatewayRef, policy, routeRef, serve } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

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
  "rules of several policies are evaluated together, and an allow rule that fails does not match",
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

/** Each fails for a request without these headers and tokens, and is false for `HARMLESS`. */
const FAILING: readonly string[] = [
  "request.headers['x-team'] == 'evil'",
  "request.headers['x-team'].contains('evil')",
  "json(request.headers['x-json']).evil",
  "int(request.headers['x-number']) > 10",
  "jwt.sub == 'evil' && request.headers['x-team'] != 'good'",
  "request.headers['x-team'] == 'evil' || jwt.sub == 'evil' && request.headers['x-team'] != 'good'",
];
const HARMLESS = { "x-team": "good", "x-json": '{"evil":false}', "x-number": "1" };
/** Headers that make some of them fail in another way than by their absence. */
const TWISTED = { "x-team": "good", "x-json": "{", "x-number": "ten" };

prove([], "a Deny rule that fails denies, wherever its policy is attached", async (context) => {
  const denies = `authorization: {action: Deny, policy: {matchExpressions: ["${FAILING[0]}"]}}`;
  for (const [refs, phase] of [
    [routeRef("a"), "PostRouting"],
    [routeRef("a", "one"), "PostRouting"],
    [gatewayRef(), "PostRouting"],
    [gatewayRef(), "PreRouting"],
    [gatewayRef("http"), "PostRouting"],
    [gatewayRef("http"), "PreRouting"],
  ] as const) {
    const gateway = await serve(context, policy("p", { refs, says: `traffic: {phase: ${phase}, ${denies}}` }));
    const url = `${gateway.url()}/a/one`;
    const statuses = [
      (await call(url)).status,
      (await call(url, { headers: HARMLESS })).status,
      (await call(url, { headers: { "x-team": "evil" } })).status,
    ];
    assert.deepEqual(statuses, [403, 200, 403], `${refs} ${phase}`);
  }
});

prove([], "whatever makes a Deny rule fail, it denies", async (context) => {
  for (const text of FAILING) {
    const gateway = await guard(context, `{action: Deny, policy: {matchExpressions: ["${text}"]}}`);
    assert.equal((await call(gateway.url(), { headers: HARMLESS })).status, 200, text);
    assert.equal((await call(gateway.url())).status, 403, text);
    if (text.includes("json") || text.includes("number"))
      assert.equal((await call(gateway.url(), { headers: TWISTED })).status, 403, text);
  }
});

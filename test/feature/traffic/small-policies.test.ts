/** traffic.headerModifiers, .directResponse and .timeouts through real sockets. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { type TestGateway, withTraffic } from "../../support/gateway/gateway.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import { call, parseJson } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const TRAFFIC = "GwPolicy spec.traffic";

async function echoWith(context: ProofContext, traffic: string): Promise<TestGateway> {
  return withTraffic(context, (await startEcho(context)).port, traffic);
}

prove(
  ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"].map(
    (field) => `${TRAFFIC}.headerModifiers.request.${field}`,
  ),
  "request headers are set, added and removed before the upstream sees them",
  async (context) => {
    const gateway = await echoWith(
      context,
      "{headerModifiers: {request: {set: [{name: x-set, value: new}], add: [{name: x-add, value: more}], remove: [x-gone]}}}",
    );
    const answer = await call(gateway.url(), { headers: { "x-set": "old", "x-add": "one", "x-gone": "1" } });
    const { headers } = echoed(answer.body);
    assert.equal(headers["x-set"], "new");
    assert.equal(headers["x-add"], "one, more");
    assert.equal(headers["x-gone"], undefined);
  },
);

prove(
  ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"].map(
    (field) => `${TRAFFIC}.headerModifiers.response.${field}`,
  ),
  "response headers are set, added and removed before the client sees them",
  async (context) => {
    const gateway = await echoWith(
      context,
      "{headerModifiers: {response: {set: [{name: content-type, value: text/x}], add: [{name: x-add, value: more}], remove: [x-upstream]}}}",
    );
    const { headers } = await call(gateway.url());
    assert.equal(headers["content-type"], "text/x");
    assert.equal(headers["x-add"], "more");
    assert.equal(headers["x-upstream"], undefined);
  },
);

prove(
  [`${TRAFFIC}.directResponse.status`, `${TRAFFIC}.directResponse.body`],
  "a direct response answers without the upstream",
  async (context) => {
    const gateway = await echoWith(context, "{directResponse: {status: 418, body: short and stout}}");
    const answer = await call(gateway.url());
    assert.equal(answer.status, 418);
    assert.equal(answer.body, "short and stout");
    assert.equal(answer.headers["x-upstream"], undefined);
  },
);

prove(
  ["bodyExpression", "headers[].name", "headers[].value"].map((field) => `${TRAFFIC}.directResponse.${field}`),
  "body and headers of a direct response may be computed",
  async (context) => {
    const gateway = await echoWith(
      context,
      `{directResponse: {status: 200, bodyExpression: '{"path": request.path}', headers: [{name: x-method, value: request.method}]}}`,
    );
    const answer = await call(`${gateway.url()}/here`);
    assert.deepEqual(parseJson(answer.body), { path: "/here" });
    assert.equal(answer.headers["x-method"], "GET");
  },
);

prove(
  ["condition", "policy.status", "policy.body"].map((field) => `${TRAFFIC}.directResponse.conditional[].${field}`),
  "the first direct response whose condition holds is used, and none at all forwards",
  async (context) => {
    const gateway = await echoWith(
      context,
      `{directResponse: {conditional: [{condition: 'request.path == "/a"', policy: {status: 201, body: A}}, {condition: 'request.path == "/b"', policy: {status: 202, body: B}}]}}`,
    );
    const answers = await Promise.all(["/a", "/b", "/c"].map((path) => call(gateway.url() + path)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 202, 200],
    );
    assert.deepEqual(
      answers.slice(0, 2).map(({ body }) => body),
      ["A", "B"],
    );
  },
);

prove(
  ["bodyExpression", "headers[].name", "headers[].value"].map(
    (field) => `${TRAFFIC}.directResponse.conditional[].policy.${field}`,
  ),
  "each conditional direct response may compute its body and headers",
  async (context) => {
    const gateway = await echoWith(
      context,
      `{directResponse: {conditional: [{condition: 'request.method == "POST"', policy: {status: 201, bodyExpression: '{"got": string(request.body)}', headers: [{name: x-by, value: '"first"'}]}}, {policy: {status: 202, bodyExpression: request.path, headers: [{name: x-by, value: '"second"'}]}}]}}`,
    );
    const first = await call(gateway.url(), { method: "POST", body: "hello" });
    assert.deepEqual([first.status, parseJson(first.body), first.headers["x-by"]], [201, { got: "hello" }, "first"]);
    const second = await call(`${gateway.url()}/here`);
    assert.deepEqual([second.status, second.body, second.headers["x-by"]], [202, "/here", "second"]);
  },
);

prove(`${TRAFFIC}.timeouts.request`, "a request that is not over in time gets 504", async (context) => {
  const gateway = await echoWith(context, "{timeouts: {request: 150ms}}");
  const startedMs = performance.now();
  const answer = await expectEvent(context, call(`${gateway.url()}/slow/200`), "an answer in time", 1_500);
  assert.ok(performance.now() - startedMs >= 140, "not before the time is over");
  assert.equal(answer.status, 504);
  assert.equal(answer.body, "request timeout");
});

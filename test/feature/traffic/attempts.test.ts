/** traffic.retry, .delay, .buffer and .hostRewrite through real sockets. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startFlaky } from "../../support/servers/flaky.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, withTraffic } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";

const TRAFFIC = "GwPolicy spec.traffic";

prove(`${TRAFFIC}.retry.codes[]`, "an answer with a listed status is asked for again, once by default", async (t) => {
  const flaky = await startFlaky(t, [503, 200, 503, 503]);
  const gateway = await withTraffic(t, flaky.port, "{retry: {codes: [503]}}");
  const first = await call(gateway.url(), { method: "POST", body: "again" });
  assert.deepEqual([first.status, first.body], [200, "answer 2"]);
  assert.equal((await call(gateway.url())).status, 503);
  assert.deepEqual(flaky.seen, [
    { body: "again", attempt: undefined },
    { body: "again", attempt: "1" },
    { body: "", attempt: undefined },
    { body: "", attempt: "1" },
  ]);
});

prove(`${TRAFFIC}.retry.attempts`, "a request is tried again as often as the policy says", async (t) => {
  const flaky = await startFlaky(t, [500, 500, 500, 200, 500, 500, 500, 500]);
  const gateway = await withTraffic(t, flaky.port, "{retry: {attempts: 3, codes: [500]}}");
  assert.equal((await call(gateway.url())).body, "answer 4");
  assert.equal((await call(gateway.url())).status, 500);
  assert.deepEqual(
    flaky.seen.map(({ attempt }) => attempt),
    [undefined, "1", "2", "3", undefined, "1", "2", "3"],
  );
});

prove(`${TRAFFIC}.retry.backoff`, "the wait between attempts counts against the deadline of the request", async (t) => {
  const flaky = await startFlaky(t, [500]);
  const gateway = await withTraffic(t, flaky.port, "{timeouts: {request: 1s}, retry: {codes: [500], backoff: 1h}}");
  assert.equal((await call(gateway.url())).status, 504);
  assert.equal(flaky.seen.length, 1);
});

prove(`${TRAFFIC}.retry.precondition`, "a request that the precondition leaves out is tried once", async (t) => {
  const flaky = await startFlaky(t, [500, 500, 200]);
  const precondition = `'request.method == "GET"'`;
  const gateway = await withTraffic(
    t,
    flaky.port,
    `{retry: {attempts: 2, codes: [500], precondition: ${precondition}}}`,
  );
  assert.equal((await call(gateway.url(), { method: "POST", body: "once" })).status, 500);
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal(flaky.seen.length, 3);
});

prove(
  `${TRAFFIC}.retry.condition`,
  "an answer for which the condition is true is asked for again; a failing one is not",
  async (t) => {
    const flaky = await startFlaky(t, [404, 404, 200]);
    const conditions = [`response.headers["x-mishap"] == "404" && string(response.body) == "answer 1"`];
    const gateway = await withTraffic(t, flaky.port, `{retry: {attempts: 5, condition: '${conditions.join()}'}}`);
    assert.deepEqual([(await call(gateway.url())).status, flaky.seen.length], [404, 2]);
  },
);

prove(
  `${TRAFFIC}.retry.attempts`,
  "a connection that breaks before the answer is tried again, and a body too long to keep is not",
  async (t) => {
    const flaky = await startFlaky(t, ["reset", "reset", "reset", 200]);
    const gateway = await withTraffic(t, flaky.port, "{retry: {attempts: 2}}");
    const long = await call(gateway.url(), { method: "POST", body: "x".repeat(64 * 1024 + 1) });
    assert.equal(long.status, 503);
    const longest = await call(gateway.url(), { method: "POST", body: "x".repeat(64 * 1024) });
    assert.deepEqual([longest.status, flaky.seen.length], [200, 4]);
    const short = await startFlaky(t, ["reset", "reset", "reset", 200]);
    const second = await withTraffic(t, short.port, "{retry: {attempts: 2}}");
    assert.deepEqual([(await call(second.url())).status, short.seen.length], [503, 3]);
  },
);

prove(`${TRAFFIC}.delay.duration`, "a delay runs while the deadline does, and nothing is sent before", async (t) => {
  const echo = await startEcho(t);
  const gateway = await withTraffic(t, echo.port, "{timeouts: {request: 200ms}, delay: {duration: 1h}}");
  const late = await call(gateway.url());
  assert.deepEqual([late.status, late.body, echo.seen.length], [504, "request timeout", 0]);
});

prove(
  `${TRAFFIC}.delay.duration`,
  "a computed delay is a duration or milliseconds, and anything else is none",
  async (t) => {
    const echo = await startEcho(t);
    const expression = `'{"/number": 3600000, "/duration": duration("1h"), "/text": "1h", "/less": -5}[request.path]'`;
    const traffic = `{timeouts: {request: 3s}, delay: {duration: ${expression}}}`;
    const gateway = await withTraffic(t, echo.port, traffic);
    const statusOf = async (path: string) => (await call(gateway.url() + path)).status;
    assert.deepEqual(
      await Promise.all(["/number", "/duration", "/text", "/less", "/unknown"].map(statusOf)),
      [504, 504, 200, 200, 200],
    );
  },
);

prove(`${TRAFFIC}.buffer.request.maxBytes`, "a request body that is too long is refused unsent", async (t) => {
  const echo = await startEcho(t);
  const gateway = await withTraffic(t, echo.port, "{buffer: {request: {maxBytes: 1Ki}}}");
  const refused = await call(gateway.url(), { method: "POST", body: "x".repeat(1025) });
  assert.deepEqual([refused.status, refused.body, echo.seen.length], [413, "", 0]);
  const passed = await call(gateway.url(), { method: "POST", body: "x".repeat(1024) });
  assert.equal(echoed(passed.body).body.length, 1024);
});

prove(`${TRAFFIC}.buffer.request.failureMode`, "a request body that is too long may stream on", async (t) => {
  const echo = await startEcho(t);
  const gateway = await withTraffic(t, echo.port, "{buffer: {request: {maxBytes: 10, failureMode: FailOpen}}}");
  const headers = { "transfer-encoding": "chunked" };
  const passed = await call(gateway.url(), { method: "POST", headers, body: "x".repeat(5000) });
  assert.equal(echoed(passed.body).body.length, 5000);
});

prove(`${TRAFFIC}.buffer.response.maxBytes`, "an answer that is too long becomes a 502 without a text", async (t) => {
  const echo = await startEcho(t);
  const gateway = await withTraffic(t, echo.port, "{buffer: {response: {maxBytes: 1000}}}");
  const refused = await call(gateway.url(), { method: "POST", body: "x".repeat(1000) });
  assert.deepEqual([refused.status, refused.body], [502, ""]);
  assert.equal((await call(gateway.url())).status, 200);
});

prove(`${TRAFFIC}.buffer.response.failureMode`, "an answer that is too long may stream on", async (t) => {
  const echo = await startEcho(t);
  const gateway = await withTraffic(t, echo.port, "{buffer: {response: {maxBytes: 10, failureMode: FailOpen}}}");
  const passed = await call(gateway.url(), { method: "POST", body: "x".repeat(5000) });
  assert.equal(echoed(passed.body).body.length, 5000);
});

prove(`${TRAFFIC}.hostRewrite.mode`, "None keeps the client's Host where the destination has a name", async (t) => {
  const echo = await startEcho(t);
  const named = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  static: {host: localhost, port: ${echo.port}}
`;
  const start = (mode: string) =>
    startGateway(
      t,
      documents(
        GATEWAY,
        named,
        route("web", "web"),
        routePolicy("host", "web", `  traffic: {hostRewrite: {mode: ${mode}}}`),
      ),
    );
  const hostSeen = async (mode: string) =>
    echoed((await call((await start(mode)).url(), { headers: { host: "shop.test" } })).body).headers["host"];
  assert.equal(await hostSeen("None"), "shop.test");
  assert.equal(await hostSeen("Auto"), "localhost");
});

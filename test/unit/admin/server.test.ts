import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startHealthServer, startMetricsServer, startReadinessServer } from "../../../src/admin/probe-servers.ts";
import { startAdminServer, startControllerAdminServer, type AdminOptions } from "../../../src/admin/server.ts";
import { captureProfile } from "../../../src/lib/profiling/capture.ts";
import { createLogger, type LogFilter } from "../../../src/lib/log.ts";
import { call } from "../../support/clients/http.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };

async function admin(
  t: TestContext,
  token?: () => Promise<string>,
  watch: AdminOptions["watch"] = () => Promise.resolve({ ok: false, code: "too_many", reason: "no" }),
): Promise<{ url: string; filter: LogFilter; quits: string[] }> {
  const filter: LogFilter = { level: "info", modules: new Map() };
  const quits: string[] = [];
  const server = await startAdminServer({
    address: LOOPBACK,
    state: () => Promise.resolve({ binds: [], config: {} }),
    explain: (name) =>
      Promise.resolve(name === "default/shop" ? [{ listener: "a", rules: [{ rule: "0" }, { rule: "pay" }] }] : []),
    explainGateway: (name) => Promise.resolve(name === "default/gw" ? [{ gateway: name, port: 80 }] : []),
    console: (query) => Promise.resolve(query),
    watch,
    tasks: () => Promise.resolve({ tasks: [], truncated: false }),
    profile: async (request) => [await captureProfile(request)],
    filter,
    log: createLogger(filter, () => {}),
    drain: async () => void quits.push("drained"),
    quit: () => void quits.push("quit"),
    token,
  });
  t.after(() => server.close());
  return { url: `http://${server.address}`, filter, quits };
}

test("the dump is pretty JSON", async (t) => {
  const { url } = await admin(t);
  const answer = await call(`${url}/config_dump`);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.deepEqual(JSON.parse(answer.body), { binds: [], config: {} });
  assert.deepEqual(JSON.parse((await call(`${url}/config_dump?section=binds`)).body), { binds: [] });
  const unknown = await call(`${url}/config_dump?section=none`);
  assert.deepEqual([unknown.status, unknown.body], [400, "unknown section; use one of binds, config\n"]);
});

test("a route is explained, whole or one rule of it, and a Gateway; an unknown one is 404", async (t) => {
  const { url } = await admin(t);
  const whole = await call(`${url}/explain?route=default/shop`);
  assert.deepEqual(JSON.parse(whole.body), [{ listener: "a", rules: [{ rule: "0" }, { rule: "pay" }] }]);
  const one = await call(`${url}/explain?route=default%2Fshop&rule=pay`);
  assert.deepEqual(JSON.parse(one.body), [{ listener: "a", rules: [{ rule: "pay" }] }]);
  const second = await call(`${url}/explain?route=default/shop&rule=1`);
  assert.equal(second.body, one.body, "a rule with a name has a position too");
  for (const rule of ["7", "2", "-1", "1.0", "", "constructor"])
    assert.equal((await call(`${url}/explain?route=default/shop&rule=${rule}`)).status, 404, rule);
  assert.equal((await call(`${url}/explain?route=default/none`)).status, 404);
  assert.deepEqual(JSON.parse((await call(`${url}/explain?gateway=default/gw`)).body), [
    { gateway: "default/gw", port: 80 },
  ]);
  assert.equal((await call(`${url}/explain?gateway=default/none`)).status, 404);
  const both = ["?gateway=gw", "?gateway=default/gw&route=default/shop", "?gateway=default/gw&rule=0"];
  for (const query of [...both, "", "?route=shop", "?route=a/b/c", "?route=/b", "?rule=0"])
    assert.equal((await call(`${url}/explain${query}`)).status, 400, query);
});

test("the log level is read, changed, refused with a usage text, and reset", async (t) => {
  const { url, filter } = await admin(t);
  assert.equal((await call(`${url}/logging`)).body, "current log level is info\n");
  const changed = await call(`${url}/logging?level=warn,proxy=debug`, { method: "POST" });
  assert.equal(changed.body, "current log level is warn,proxy=debug\n");
  assert.equal(filter.modules.get("proxy"), "debug");
  const colon = await call(`${url}/logging?level=warn,proxy:trace`, { method: "POST" });
  assert.equal(colon.body, "current log level is warn,proxy=trace\n");
  const refused = await call(`${url}/logging?level=loud`, { method: "POST" });
  assert.equal(refused.status, 400);
  assert.equal(filter.level, "warn");
  assert.equal((await call(`${url}/logging?reset=1`, { method: "POST" })).body, "current log level is info\n");
});

test("a foreign Host is refused, an unknown path is 404 and a wrong method 405", async (t) => {
  const { url } = await admin(t);
  const foreign = await call(`${url}/config_dump`, { headers: { host: "evil.test" } });
  assert.deepEqual(
    [foreign.status, foreign.headers["content-type"], foreign.body],
    [
      403,
      "text/plain; charset=utf-8",
      "this Host is refused; use localhost or an address, such as http://127.0.0.1:15000/\n",
    ],
  );
  for (const method of ["POST", "PUT", "HEAD"]) {
    const page = await call(url, { method });
    assert.deepEqual([page.status, page.headers["allow"]], [405, "GET"], method);
  }
  assert.equal((await call(`${url}/config_dump`, { headers: { host: "127.0.0.1.evil.test" } })).status, 403);
  assert.equal((await call(`${url}/nothing`)).status, 404);
  assert.equal((await call(`${url}/config_dump`, { method: "POST" })).status, 405);
  assert.equal((await call(`${url}/quitquitquit`)).status, 405);
});

test("no answer is taken for a page because of what it contains", async (t) => {
  const { url } = await admin(t);
  const paths = ["/", "/config_dump", "/logging", "/memory", "/debug/tasks", "/debug/trace", "/explain", "/nothing"];
  for (const path of [...paths, "/console/app.js", "/console/data"])
    assert.equal((await call(url + path)).headers["x-content-type-options"], "nosniff", path);
  const refused = await call(`${url}/config_dump`, { headers: { host: "evil.test" } });
  assert.equal(refused.headers["x-content-type-options"], "nosniff");
});

test("what somebody has forwarded is refused", async (t) => {
  const { url, quits } = await admin(t);
  const names = ["Forwarded", "Via", "CDN-Loop", "X-Forwarded-For", "x-forwarded-proto", "X-Forwarded-Client-Cert"];
  for (const name of [...names, "X-Real-IP"]) {
    assert.equal((await call(`${url}/config_dump`, { headers: { [name]: "a" } })).status, 403, name);
    assert.equal((await call(`${url}/quitquitquit`, { method: "POST", headers: { [name]: "" } })).status, 403, name);
  }
  assert.deepEqual(quits, []);
});

test("what another web page makes the browser send is refused, and starts nothing", async (t) => {
  const watched: unknown[] = [];
  const { url } = await admin(t, undefined, (options) => {
    watched.push(options);
    return Promise.resolve({ ok: false, code: "too_many", reason: "no" });
  });
  // A link or a frame, an image, a fetch without CORS, and a page of another port of this machine.
  const foreign = [
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty" },
    { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    { "sec-fetch-site": "anything", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
  ];
  for (const headers of foreign)
    for (const path of ["/debug/trace", "/debug/pprof/profile?seconds=300", "/config_dump", "/"])
      assert.equal((await call(url + path, { headers })).status, 403, `${path} ${JSON.stringify(headers)}`);
  assert.deepEqual(watched, []);
  for (const headers of [{ "sec-fetch-site": "none" }, { "sec-fetch-site": "same-origin" }, {}])
    assert.equal((await call(`${url}/debug/trace`, { headers })).status, 503);
  assert.equal(watched.length, 3);
});

test("with a token, requests need it; the page asks for it", async (t) => {
  let token = "first-token";
  const { url, quits } = await admin(t, () => Promise.resolve(token));
  const ask = (path: string, authorization?: string, method = "GET") =>
    call(`${url}${path}`, { method, headers: authorization === undefined ? {} : { authorization } });
  const wrong = [
    "Bearer",
    "Bearer ",
    "Bearer first",
    "Bearer first-token2",
    "Basic first-token",
    "first-token",
    "Bearer a b",
  ];
  for (const path of ["/config_dump", "/logging", "/memory", "/nothing", "//"])
    for (const authorization of [undefined, ...wrong]) {
      const answer = await ask(path, authorization);
      assert.equal(answer.status, 401, `${path} ${authorization}`);
      assert.equal(answer.headers["www-authenticate"], "Bearer");
    }
  assert.equal((await ask("/quitquitquit", "Bearer x", "POST")).status, 401);
  assert.deepEqual(quits, []);
  assert.equal((await ask("/config_dump", "Bearer first-token")).status, 200);
  assert.equal((await ask("/config_dump", "bearer first-token")).status, 200);
  for (const path of ["/", "/console/app.js", "/console/app.css"]) assert.equal((await ask(path)).status, 200, path);
  for (const path of ["/console/data", "/console/app.js/", "/console/app.css?"])
    assert.equal((await ask(path, undefined, "POST")).status, 401, path);
  assert.equal((await ask("/console/data")).status, 401);
  token = "second-token";
  assert.equal((await ask("/config_dump", "Bearer first-token")).status, 401);
  assert.equal((await ask("/config_dump", "Bearer second-token")).status, 200);
  token = "";
  assert.equal((await ask("/config_dump", "Bearer ")).status, 401);
});

test("the page runs its own files alone, and is shown in no other page", async (t) => {
  const { url } = await admin(t, () => Promise.resolve("secret"));
  const page = await call(url);
  assert.equal(
    page.headers["content-security-policy"],
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  assert.doesNotMatch(page.body, /<script>|<style| style=| on[a-z]+=/);
  assert.match(page.body, /<code>\/config_dump<\/code> \(GET\)/);
  const types = { "/console/app.js": "text/javascript", "/console/app.css": "text/css" };
  for (const [path, type] of Object.entries(types)) {
    assert.ok(page.body.includes(`"${path}"`), path);
    const file = await call(url + path);
    assert.equal(file.headers["content-type"], `${type}; charset=utf-8`);
    assert.equal(file.headers["x-content-type-options"], "nosniff");
  }
  assert.equal(page.headers["x-content-type-options"], "nosniff");
});

test("a client that asks for plain text gets the list of paths", async (t) => {
  const { url } = await admin(t);
  const list = await call(url, { headers: { accept: "text/plain" } });
  assert.match(list.body, /^\/config_dump \(GET\): /m);
  assert.match(list.body, /^\/quitquitquit \(POST\): /m);
});

test("the data of the page is asked for by bounded texts", async (t) => {
  const { url } = await admin(t);
  const answer = await call(`${url}/console/data?known=abc&backends=&usage=${"x".repeat(1000)}&usage2=1`);
  assert.deepEqual(JSON.parse(answer.body), { known: "abc", usage: "x".repeat(200) });
  assert.equal(answer.headers["cache-control"], "no-store");
});

test("memory figures are bytes above zero", async (t) => {
  const { url } = await admin(t);
  const report = JSON.parse((await call(`${url}/memory`)).body) as { process: { rss: number }; heapSpaces: unknown[] };
  assert.ok(report.process.rss > 1_000_000);
  assert.ok(report.heapSpaces.length > 0);
});

test("a controller serves its own paths under the same rules", async (t) => {
  const filter: LogFilter = { level: "info", modules: new Map() };
  const server = await startControllerAdminServer({
    address: LOOPBACK,
    token: () => Promise.resolve("the-token"),
    state: () => Promise.resolve({ gateways: {}, dataPlanes: [] }),
    tasks: () => Promise.resolve({ tasks: [{ kind: "listener" }], truncated: false }),
    profile: async (request) => [await captureProfile(request)],
    filter,
  });
  t.after(() => server.close());
  const ask = (path: string, method = "GET", headers: Record<string, string> = {}) =>
    call(`http://${server.address}${path}`, { method, headers: { authorization: "Bearer the-token", ...headers } });
  assert.equal((await ask("/snapshots/state")).body, '{"gateways":{},"dataPlanes":[]}\n');
  assert.equal((await ask("/snapshots/state?pretty")).body, (await ask("/config_dump")).body);
  assert.equal((await ask("/logging?level=warn,xds=debug", "PUT")).body, "current log level is warn,xds=debug\n");
  assert.equal((await ask("/logging?level=loud", "PUT")).status, 400);
  assert.equal((await ask("/logging", "DELETE")).headers["allow"], "GET, POST, PUT");
  const dump = await ask("/config_dump?section=dataPlanes");
  assert.deepEqual(JSON.parse(dump.body), { dataPlanes: [] });
  assert.deepEqual(Object.keys(JSON.parse((await ask("/version")).body) as object), ["string", "version"]);
  assert.match((await ask("/debug/tasks")).body, /"kind": "listener"/);
  assert.match((await ask("/memory")).body, /"heapBytes"/);
  assert.equal((await ask("/logging?level=debug", "POST")).body, "current log level is debug\n");
  assert.equal(filter.level, "debug");
  assert.equal((await ask("/logging?reset=1", "POST")).body, "current log level is info\n");
  for (const kind of ["profile", "heap"]) {
    const profile = await ask(`/debug/pprof/${kind}?seconds=1`);
    assert.deepEqual([profile.status, profile.headers["content-type"]], [200, "application/octet-stream"], kind);
  }
  const list = await ask("/", "GET", { authorization: "" });
  assert.match(list.body, /^\/config_dump \(GET\): what is served to each Gateway/m);
  for (const path of ["/debug/trace", "/quitquitquit", "/explain", "/console/data"])
    assert.equal((await ask(path)).status, 404, path);
  for (const path of [
    "/config_dump",
    "/debug/tasks",
    "/debug/pprof/heap",
    "/logging",
    "/memory",
    "/snapshots/state",
    "/version",
  ]) {
    assert.equal((await ask(path, "GET", { authorization: "Bearer wrong" })).status, 401, path);
    assert.equal((await ask(path, "GET", { host: "evil.test" })).status, 403, path);
    assert.equal((await ask(path, "GET", { "sec-fetch-site": "cross-site" })).status, 403, path);
    assert.equal((await ask(path, "DELETE")).status, 405, path);
  }
  const foreign = await ask("/logging?level=trace", "POST", { origin: "http://evil.test" });
  assert.deepEqual([foreign.status, filter.level], [403, "info"]);
});

test("quitting drains before it ends the process", async (t) => {
  const { url, quits } = await admin(t);
  assert.equal((await call(`${url}/quitquitquit`, { method: "POST" })).body, "shutdown now\n");
  assert.deepEqual(quits, ["drained", "quit"]);
});

test("readiness names what it waits for", async (t) => {
  const pending = new Set(["configuration"]);
  const server = await startReadinessServer({ address: LOOPBACK, pending: () => [...pending] });
  t.after(() => server.close());
  const url = `http://${server.address}/healthz/ready`;
  const waiting = await call(url);
  assert.deepEqual([waiting.status, waiting.body], [500, "not ready, pending: configuration\n"]);
  pending.clear();
  assert.deepEqual([(await call(url)).status, (await call(url)).body], [200, "ready\n"]);
});

test("a controller is alive at once and ready when it has read the cluster; no other path or method counts", async (t) => {
  let isReady = false;
  const server = await startHealthServer({ address: LOOPBACK, isReady: () => isReady });
  t.after(() => server.close());
  const statusOf = async (path: string, method = "GET"): Promise<number> =>
    (await call(`http://${server.address}${path}`, { method })).status;
  assert.deepEqual([await statusOf("/healthz"), await statusOf("/readyz")], [200, 503]);
  isReady = true;
  assert.deepEqual([await statusOf("/readyz"), await statusOf("/readyz?verbose")], [200, 200]);
  assert.deepEqual([await statusOf("/"), await statusOf("/readyz", "POST")], [404, 405]);
});

test("metrics are served as Prometheus text", async (t) => {
  const server = await startMetricsServer({ address: LOOPBACK, render: () => Promise.resolve("x 1\n") });
  t.after(() => server.close());
  const answer = await call(`http://${server.address}/metrics`);
  assert.equal(answer.body, "x 1\n");
  assert.match(String(answer.headers["content-type"]), /^text\/plain; version=0\.0\.4/);
});

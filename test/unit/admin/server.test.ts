import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startAdminServer, startMetricsServer, startReadinessServer } from "../../../src/admin/server.ts";
import { createLogger, type LogFilter } from "../../../src/lib/log.ts";
import { call } from "../../support/http.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };

async function admin(t: TestContext): Promise<{ url: string; filter: LogFilter; quits: string[] }> {
  const filter: LogFilter = { level: "info", modules: new Map() };
  const quits: string[] = [];
  const server = await startAdminServer({
    address: LOOPBACK,
    state: () => Promise.resolve({ binds: [] }),
    filter,
    log: createLogger(filter, () => {}),
    drain: async () => void quits.push("drained"),
    quit: () => void quits.push("quit"),
  });
  t.after(() => server.close());
  return { url: `http://${server.address}`, filter, quits };
}

test("the dump is pretty JSON", async (t) => {
  const { url } = await admin(t);
  const answer = await call(`${url}/config_dump`);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.deepEqual(JSON.parse(answer.body), { binds: [] });
});

test("the log level is read, changed, refused with a usage text, and reset", async (t) => {
  const { url, filter } = await admin(t);
  assert.equal((await call(`${url}/logging`)).body, "current log level is info\n");
  const changed = await call(`${url}/logging?level=warn,proxy=debug`, { method: "POST" });
  assert.equal(changed.body, "current log level is warn,proxy=debug\n");
  assert.equal(filter.modules.get("proxy"), "debug");
  const refused = await call(`${url}/logging?level=loud`, { method: "POST" });
  assert.equal(refused.status, 400);
  assert.equal(filter.level, "warn");
  assert.equal((await call(`${url}/logging?reset=1`, { method: "POST" })).body, "current log level is info\n");
});

test("a foreign Host is refused, an unknown path is 404 and a wrong method 405", async (t) => {
  const { url } = await admin(t);
  assert.equal((await call(`${url}/config_dump`, { headers: { host: "evil.test" } })).status, 403);
  assert.equal((await call(`${url}/config_dump`, { headers: { host: "127.0.0.1.evil.test" } })).status, 403);
  assert.equal((await call(`${url}/nothing`)).status, 404);
  assert.equal((await call(`${url}/config_dump`, { method: "POST" })).status, 405);
  assert.equal((await call(`${url}/quitquitquit`)).status, 405);
});

test("memory figures are bytes above zero", async (t) => {
  const { url } = await admin(t);
  const report = JSON.parse((await call(`${url}/memory`)).body) as { process: { rss: number }; heapSpaces: unknown[] };
  assert.ok(report.process.rss > 1_000_000);
  assert.ok(report.heapSpaces.length > 0);
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

test("metrics are served as Prometheus text", async (t) => {
  const server = await startMetricsServer({ address: LOOPBACK, render: () => Promise.resolve("x 1\n") });
  t.after(() => server.close());
  const answer = await call(`http://${server.address}/metrics`);
  assert.equal(answer.body, "x 1\n");
  assert.match(String(answer.headers["content-type"]), /^text\/plain; version=0\.0\.4/);
});

/** The stream of `/debug/trace`: over threads, slow readers, clients that leave, and the admin server. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { AuthorizationAction } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { startAdminServer } from "../../../src/admin/server.ts";
import { captureProfile } from "../../../src/lib/profiling/capture.ts";
import { createLogger, type LogFilter } from "../../../src/lib/log.ts";
import { listener, policy, route, staticBackend, to, type DataPlane } from "../../support/gateway/data-plane.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { rulesOfRoute, startTracedPlane } from "../../support/gateway/traced-plane.ts";
import { call } from "../../support/clients/http.ts";
import { openWatch } from "../../support/clients/trace.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

test("a watch over several threads gets one request of any of them", async (t) => {
  const upstream = await startUpstream((_request, response) => void response.end("hello"));
  t.after(() => upstream.close());
  const { workers, url } = await startWorkers(t, [
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port),
  ]);
  const watch = await openWatch(workers);
  await call(url);
  const events = await watch.events();
  assert.deepEqual([events[0]?.message.type, events.at(-1)?.message.type], ["requestStarted", "requestFinished"]);
  const wrong = await workers.watch({ expression: "(", showsSecrets: false });
  assert.ok(!wrong.ok && wrong.code === "invalid_expression");
});

test("watches are bounded, and one that never reads loses events and costs the queue alone", async (t) => {
  const headers = Array.from({ length: 300 }, (_, at) => `request.headers['x-${at}'] == 'no'`);
  const plane = await startTracedPlane(t, [
    policy(
      "rules",
      rulesOfRoute(
        AuthorizationAction.DENY,
        "request.path == '/no'",
        ...headers.map((text) => `!has(request.headers.x) ? false : ${text}`),
      ),
    ),
  ]);
  const first = await openWatch(plane.proxy);
  assert.equal((await call(plane.url)).status, 200);
  const events = await first.events();
  assert.ok(events.length <= 257, String(events.length));
  assert.ok(Number(events.at(-1)?.message["dropped"]) > 40);
  const opened = await Promise.all(Array.from({ length: 64 }, () => openWatch(plane.proxy)));
  const more = await plane.proxy.watch({ expression: undefined, showsSecrets: false });
  assert.ok(!more.ok && more.code === "too_many");
  for (const each of opened) each.close();
  (await openWatch(plane.proxy)).close();
});

async function startAdmin(t: TestContext, { proxy }: DataPlane): Promise<string> {
  const filter: LogFilter = { level: "info", modules: new Map() };
  const server = await startAdminServer({
    address: { host: "127.0.0.1", port: 0 },
    state: () => Promise.resolve({}),
    explain: () => Promise.resolve([]),
    explainGateway: () => Promise.resolve([]),
    watch: (options) => proxy.watch(options),
    console: () => Promise.resolve({}),
    tasks: () => Promise.resolve({ tasks: [], truncated: false }),
    profile: async (request) => [await captureProfile(request)],
    filter,
    log: createLogger(filter, () => undefined),
    drain: () => Promise.resolve(),
    quit: () => undefined,
  });
  t.after(() => server.close());
  return `http://${server.address}`;
}

test("the stream says that it waits, keeps alive, carries the events and ends with the request", async (t) => {
  const plane = await startTracedPlane(t);
  const admin = await startAdmin(t, plane);
  for (const method of ["GET", "POST"]) {
    const answer = await fetch(`${admin}/debug/trace`, { method });
    assert.equal(answer.headers.get("content-type"), "text/event-stream");
    assert.equal(answer.headers.get("cache-control"), "no-cache");
    let text = "";
    let isSent = false;
    // The first comment says that the watch waits; the request is sent after the second one, which keeps alive.
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (!isSent && text.includes(": keepalive\n\n")) {
        isSent = true;
        await call(plane.url);
      }
    }
    assert.match(text, /^: ready\n\n(: keepalive\n\n)+data: \{.*"requestStarted"/);
    assert.match(text, /data: \{[^\n]*"type":"requestFinished"[^\n]*\}\n\n$/);
  }
  const refused = await call(`${admin}/debug/trace?expression=%28`);
  assert.equal(refused.status, 400);
  assert.match(refused.body, /^invalid expression: /);
});

test("a client that goes away frees its watch", async (t) => {
  const plane = await startTracedPlane(t);
  const admin = await startAdmin(t, plane);
  const { hostname, port } = new URL(admin);
  for (let round = 0; round < 3; round++) {
    const sockets = Array.from({ length: 64 }, () => connect(Number(port), hostname));
    await Promise.all(
      sockets.map(async (socket) => {
        socket.write(`GET /debug/trace HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`);
        await new Promise((resolve) => socket.once("data", resolve));
      }),
    );
    for (const socket of sockets) socket.destroy();
    for (;;) {
      const probe = await plane.proxy.watch({ expression: undefined, showsSecrets: false });
      if (probe.ok) {
        probe.reader.close();
        break;
      }
      await new Promise(setImmediate);
    }
  }
});

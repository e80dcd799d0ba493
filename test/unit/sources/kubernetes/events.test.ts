/** Events on a server that answers by hand: made once, counted after that, and bounded. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createEventRecorder, type EventRecorder } from "../../../../src/sources/kubernetes/events.ts";
import { startScriptedApi, type ScriptedApi } from "../../../support/servers/scripted-api.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";

const GATEWAY = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "gw", namespace: "shop", uid: "uid-of-gw" },
};

async function start(t: TestContext): Promise<{ api: ScriptedApi; events: EventRecorder; lines: readonly string[] }> {
  const api = await startScriptedApi();
  t.after(() => api.stop());
  const { log, lines } = recordingLog();
  const now = (): Date => new Date("2026-01-02T03:04:05.678Z");
  return { api, lines, events: createEventRecorder({ client: api.client, component: "tester", log, now }) };
}

const conflict = { kind: "Status", code: 409, reason: "AlreadyExists", message: "it exists" };

test("an event names its object, and one that happens again is counted", async (t) => {
  const { api, events } = await start(t);
  events.warn(GATEWAY, "GwProxyNack", "port 80 is taken");
  const made = await api.next();
  assert.equal(`${made.method} ${made.path}`, "POST /api/v1/namespaces/shop/events");
  const event = JSON.parse(made.body) as Record<string, unknown> & { metadata: { name: string } };
  assert.match(event.metadata.name, /^gw\.[0-9a-f]{16}$/);
  assert.deepEqual(event["involvedObject"], { ...GATEWAY.metadata, apiVersion: GATEWAY.apiVersion, kind: "Gateway" });
  assert.deepEqual(
    ["type", "reason", "message", "count", "lastTimestamp"].map((member) => event[member]),
    ["Warning", "GwProxyNack", "port 80 is taken", 1, "2026-01-02T03:04:05Z"],
  );
  made.reply(event, 201);
  events.warn(GATEWAY, "GwProxyNack", "port 80 is taken");
  const counted = await api.next();
  assert.equal(`${counted.method} ${counted.path}`, `PATCH /api/v1/namespaces/shop/events/${event.metadata.name}`);
  assert.deepEqual(JSON.parse(counted.body), { count: 2, lastTimestamp: "2026-01-02T03:04:05Z" });
  counted.reply(event);
});

test("the name of an event is one of the API, however long the name of the object is", async (t) => {
  const { api, events } = await start(t);
  for (const [name, begin] of [
    [`${"x".repeat(199)}-${"y".repeat(50)}`, "x".repeat(199)],
    [`${"x".repeat(198)}-.-${"y".repeat(50)}`, "x".repeat(198)],
    ["x".repeat(253), "x".repeat(200)],
  ] as const) {
    events.warn({ ...GATEWAY, metadata: { ...GATEWAY.metadata, name } }, "GwProxyNack", "text");
    const made = await api.next();
    const event = JSON.parse(made.body) as { readonly metadata: { readonly name: string } };
    assert.equal(event.metadata.name.slice(0, -17), begin);
    made.reply({}, 201);
  }
});

test("a long message is cut to the limit of the API, and never has half a character", async (t) => {
  const { api, events } = await start(t);
  for (const [message, written] of [
    [`${"x".repeat(1023)}\u{1f600} more`, `${"x".repeat(1023)}\ufffd`],
    ["half \ud83d of one", "half \ufffd of one"],
    ["\u{1f600}", "\u{1f600}"],
  ] as const) {
    events.warn(GATEWAY, "GwProxyNack", message);
    const made = await api.next();
    assert.equal((JSON.parse(made.body) as { message: string }).message, written);
    made.reply({}, 201);
  }
});

test("one that is there from before a restart is counted, and one that was cleared away is made again", async (t) => {
  const { api, events } = await start(t);
  events.warn(GATEWAY, "GwProxyNack", "again");
  (await api.next()).reply(conflict, 409);
  const patched = await api.next();
  assert.equal(patched.method, "PATCH");
  patched.reply({});
  events.warn(GATEWAY, "GwProxyNack", "again");
  (await api.next()).reply({ kind: "Status", code: 404, message: "gone" }, 404);
  const made = await api.next();
  assert.equal(made.method, "POST");
  made.reply({}, 201);
});

test("what cannot be written is logged, and what comes after it is written", async (t) => {
  const { api, events, lines } = await start(t);
  events.warn(GATEWAY, "GwProxyNack", "first");
  events.warn(GATEWAY, "GwProxyNack", "second");
  (await api.next()).reply({ kind: "Status", code: 403, message: "events is forbidden" }, 403);
  const second = await api.next();
  assert.match(second.body, /"message":"second"/);
  second.reply({}, 201);
  assert.match(lines.join(""), /an event could not be written.*events is forbidden/);
});

test("events that come faster than they are written are dropped beyond a bound", async (t) => {
  const { api, events, lines } = await start(t);
  for (let at = 0; at < 150; at++) events.warn(GATEWAY, "GwProxyNack", `number ${at}`);
  assert.equal(lines.filter((line) => line.includes("too many events")).length, 50);
  for (let at = 0; at < 100; at++) (await api.next()).reply({}, 201);
});

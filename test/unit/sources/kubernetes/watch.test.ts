import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { createKubernetesSource, type KubernetesSource } from "../../../../src/sources/kubernetes/kubernetes-source.ts";
import type { WatchedKind } from "../../../../src/sources/kubernetes/kinds.ts";
import type { WatchTimes } from "../../../../src/sources/kubernetes/watch.ts";
import { startScriptedApi, type ScriptedApi } from "../../../support/servers/scripted-api.ts";
import { RecordingSink } from "../../../support/gateway/recording-sink.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";

const WIDGET: WatchedKind = {
  group: "example.com",
  versions: ["v1"],
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
  fieldSelector: "type!=junk",
};
const PATH = "/apis/example.com/v1/widgets";
const KEY = "example.com/Widget/default";
/** Retries at once; a silence that no test waits for unless it says so. */
const TIMES: WatchTimes = { retryMs: { initial: 1, max: 2 }, watchSeconds: 300, silenceMs: 60_000 };

let api: ScriptedApi;
let source: KubernetesSource;
let sink: RecordingSink;
let lines: string[];

beforeEach(async () => {
  api = await startScriptedApi((path) => path.includes("customresourcedefinitions"));
  sink = new RecordingSink();
});

afterEach(async () => {
  await source.stop();
  await api.stop();
});

function start(times: WatchTimes = TIMES, kinds: readonly WatchedKind[] = [WIDGET]): Promise<void> {
  const recorded = recordingLog();
  lines = recorded.lines;
  source = createKubernetesSource({ client: api.client, kinds, log: recorded.log, times });
  const started = source.start(sink);
  // Some tests stop before the first state; those that await `started` see its failure all the same.
  started.catch(() => undefined);
  return started;
}

function widget(name: string, resourceVersion: string, spec: object = {}): object {
  return {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name, namespace: "default", resourceVersion },
    spec,
  };
}

function list(resourceVersion: string, items: readonly object[], next?: string): object {
  return {
    kind: "WidgetList",
    metadata: { resourceVersion, ...(next === undefined ? {} : { continue: next }) },
    items,
  };
}

function expired(): object {
  return { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" };
}

/** Takes the start of a source: one list with the given objects, then the watch. */
async function listed(resourceVersion: string, items: readonly object[]): ReturnType<ScriptedApi["next"]> {
  (await api.next()).reply(list(resourceVersion, items));
  return api.next();
}

test("a list is read page by page and is one step", async () => {
  const started = start();
  const first = await api.next();
  assert.equal(first.path, PATH);
  assert.equal(first.query.get("limit"), "500");
  assert.equal(first.query.get("fieldSelector"), "type!=junk");
  assert.equal(first.headers["authorization"], "Bearer open-sesame");
  first.reply(list("10", [widget("a", "1")], "token"));
  const second = await api.next();
  assert.equal(second.query.get("continue"), "token");
  second.reply(list("10", [widget("b", "2")]));
  await started;
  assert.equal(sink.batches.length, 1);
  assert.deepEqual([...sink.objects.keys()], [`${KEY}/a`, `${KEY}/b`]);
});

test("pages that expire while they are read lead to one list without pages", async () => {
  const started = start();
  (await api.next()).reply(list("10", [widget("a", "1")], "token"));
  (await api.next()).reply(expired(), 410);
  const whole = await api.next();
  assert.equal(whole.query.has("limit"), false);
  assert.equal(whole.query.has("continue"), false);
  whole.reply(list("12", [widget("b", "2")]));
  await started;
  assert.deepEqual([...sink.objects.keys()], [`${KEY}/b`]);
});

test("the watch begins where the list ended and asks for bookmarks", async () => {
  void start();
  const watch = await listed("10", []);
  assert.equal(watch.query.get("watch"), "true");
  assert.equal(watch.query.get("allowWatchBookmarks"), "true");
  assert.equal(watch.query.get("resourceVersion"), "10");
  assert.equal(watch.query.get("fieldSelector"), "type!=junk");
  const seconds = Number(watch.query.get("timeoutSeconds"));
  assert.ok(seconds >= 300 && seconds <= 600);
});

test("changes arrive, and those that come together are one step", async () => {
  void start();
  const watch = await listed("10", [widget("a", "1"), widget("b", "2")]);
  watch.send(
    { type: "ADDED", object: widget("c", "11") },
    { type: "MODIFIED", object: widget("a", "12", { size: 2 }) },
    { type: "DELETED", object: widget("b", "13") },
  );
  await sink.until(({ objects }) => objects.has(`${KEY}/c`) && !objects.has(`${KEY}/b`));
  assert.equal(sink.batches.length, 2);
  assert.deepEqual((sink.objects.get(`${KEY}/a`) as unknown as { spec: object }).spec, { size: 2 });
});

test("a bookmark makes no event and moves the version of the next watch", async () => {
  void start();
  const watch = await listed("10", []);
  watch.send({ type: "BOOKMARK", object: { kind: "Widget", metadata: { resourceVersion: "90" } } });
  watch.end();
  const again = await api.next();
  assert.equal(again.query.get("watch"), "true");
  assert.equal(again.query.get("resourceVersion"), "90");
  assert.equal(sink.batches.length, 1, "only the first state");
});

test("a connection that breaks in the middle of an event loses nothing: the next watch asks for that event again", async () => {
  void start();
  const watch = await listed("10", []);
  const whole = JSON.stringify({ type: "ADDED", object: widget("late", "12") });
  watch.send({ type: "ADDED", object: widget("a", "11") });
  watch.sendText(whole.slice(0, 40));
  await sink.until(({ objects }) => objects.has(`${KEY}/a`));
  watch.cut();
  const again = await api.next();
  assert.equal(again.query.get("resourceVersion"), "11");
  again.sendText(`${whole}\n`);
  await sink.until(({ objects }) => objects.has(`${KEY}/late`));
});

test("an answer that ends in the middle of an event is a broken one, not a short one", async () => {
  void start();
  const watch = await listed("10", []);
  watch.sendText('{"type":"DELETED","object":{"metadata":{"name":"a"');
  watch.end();
  assert.equal((await api.next()).query.get("resourceVersion"), "10");
  assert.ok(lines.some((line) => line.includes("in the middle of an event")));
});

test("an event that arrives in pieces, even inside a character, is one event", async () => {
  void start();
  const watch = await listed("10", []);
  const bytes = Buffer.from(`${JSON.stringify({ type: "ADDED", object: widget("a", "11", { text: "grüße" }) })}\n`);
  const cut = bytes.indexOf("ü") + 1;
  watch.sendText(bytes.subarray(0, cut));
  watch.sendText(bytes.subarray(cut));
  await sink.until(({ objects }) => objects.has(`${KEY}/a`));
  assert.deepEqual((sink.objects.get(`${KEY}/a`) as unknown as { spec: object }).spec, { text: "grüße" });
});

for (const [how, tell] of [
  ["as an answer", (watch: Awaited<ReturnType<ScriptedApi["next"]>>) => watch.reply(expired(), 410)],
  [
    "as an event",
    (watch: Awaited<ReturnType<ScriptedApi["next"]>>) => watch.send({ type: "ERROR", object: expired() }),
  ],
] as const) {
  test(`a version that is too old, told ${how}, leads to a new list whose gaps are deletions`, async () => {
    void start();
    const watch = await listed("10", [widget("same", "1"), widget("changed", "2"), widget("gone", "3")]);
    tell(watch);
    const again = await api.next();
    assert.equal(again.query.has("watch"), false);
    again.reply(list("50", [widget("same", "1"), widget("changed", "40"), widget("new", "41")]));
    assert.equal((await api.next()).query.get("resourceVersion"), "50");
    await sink.until(({ objects }) => objects.has(`${KEY}/new`));
    assert.deepEqual(sink.history(`${KEY}/gone`), ["set", "delete"]);
    assert.deepEqual(sink.history(`${KEY}/changed`), ["set", "set"]);
    assert.deepEqual(sink.history(`${KEY}/same`), ["set"], "what did not change is not told again");
  });
}

test("a server in trouble is asked again, and what cannot be listed is reported until it can", async () => {
  const started = start();
  const forbidden = { kind: "Status", code: 403, reason: "Forbidden", message: "widgets are forbidden for tester" };
  (await api.next()).reply(forbidden, 403);
  await sink.until(({ problems }) => problems.length === 1);
  assert.equal(sink.problems[0]?.object, "Widget");
  assert.match(sink.problems[0]?.message ?? "", /widgets are forbidden for tester/);
  assert.match(sink.problems[0]?.suggestion ?? "", /widgets\.example\.com/);
  (await api.next()).reply({}, 503);
  (await api.next()).sendText("<html>");
  assert.equal(sink.batches.length, 0, "without the whole state nothing is handed over");
  await source.stop();
  await assert.rejects(started, /stopped before the cluster had been read/);
});

test("a refused list recovers and takes its report back", async () => {
  const started = start();
  (await api.next()).reply({}, 503);
  await sink.until(({ problems }) => problems.length === 1);
  (await api.next()).reply(list("10", [widget("a", "1")]));
  await started;
  assert.deepEqual(sink.problems, []);
  assert.ok(sink.objects.has(`${KEY}/a`));
});

test("a connection that falls silent is given up and taken up again", async () => {
  void start({ ...TIMES, silenceMs: 20 });
  const watch = await listed("10", []);
  watch.send({ type: "ADDED", object: widget("a", "11") });
  await watch.closed;
  assert.equal((await api.next()).query.get("resourceVersion"), "11");
});

test("a kind that is not defined counts as empty and is asked for again", async () => {
  const started = start();
  const missing = { kind: "Status", code: 404, reason: "NotFound", message: "the server could not find it" };
  (await api.next()).reply(missing, 404);
  await started;
  assert.deepEqual(sink.batches, [[]]);
  (await api.next()).reply(list("5", [widget("a", "1")]));
  await sink.until(({ objects }) => objects.has(`${KEY}/a`));
});

test("an older version of a kind is read where the preferred one is not served", async () => {
  void start(TIMES, [{ ...WIDGET, versions: ["v2", "v1"] }]);
  const probe = await api.next();
  assert.equal(probe.path, "/apis/example.com/v2/widgets");
  probe.reply({ code: 404, message: "not found" }, 404);
  (await api.next()).reply(list("5", []));
  const whole = await api.next();
  assert.equal(whole.path, PATH);
  whole.reply(list("5", [{ metadata: { name: "bare", namespace: "default", resourceVersion: "1" } }]));
  await sink.until(({ objects }) => objects.has(`${KEY}/bare`));
  assert.equal(sink.objects.get(`${KEY}/bare`)?.apiVersion, "example.com/v1");
});

test("stopping ends an open watch", async () => {
  void start();
  const watch = await listed("10", []);
  watch.send({ type: "ADDED", object: widget("a", "11") });
  await sink.until(({ objects }) => objects.has(`${KEY}/a`));
  await source.stop();
  await watch.closed;
});

/** Threads that never come round again or run out of memory: each is ended and replaced, and nobody else is. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Session } from "node:inspector";
import { BroadcastChannel } from "node:worker_threads";
import { test, type TestContext } from "node:test";
import { BEAT_MS, Watchdog } from "../../../src/proxy/workers/watchdog.ts";
import { allocateBeats } from "../../../src/proxy/shared-state.ts";
import { listener, route, staticBackend, to } from "../../support/gateway/data-plane.ts";
import { call } from "../../support/clients/http.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { oneOf, startWorkers } from "../../support/gateway/workers.ts";

/** Runs an expression in the only worker of this process, which first says that it has begun. Resolves then. */
async function runInWorker(t: TestContext, statement: string): Promise<void> {
  const said = new BroadcastChannel("stuck-worker");
  t.after(() => said.close());
  const begun = once(said, "message");
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  const attached = once(session, "NodeWorker.attachedToWorker");
  session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
  // What Node sends with the event.
  const [{ params }] = (await attached) as [{ readonly params: { readonly sessionId: string } }];
  const expression = `new BroadcastChannel("stuck-worker").postMessage("begun"); ${statement}`;
  const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression } });
  session.post("NodeWorker.sendMessageToWorker", { sessionId: params.sessionId, message });
  await begun;
}

test("a thread that runs for ever is ended, counted and replaced", { timeout: 60_000 }, async (t) => {
  const upstream = await startUpstream((_request, response) => void response.end("hello"));
  t.after(() => upstream.close());
  const clock = testClock();
  const resources = [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)];
  const plane = await startWorkers(t, resources, { count: 1, clock, stuckAfterMs: 3 * BEAT_MS });
  const stuck = oneOf(plane.workers);
  await runInWorker(t, "for (;;);");
  // The first look finds the last beat.
  await clock.advance(3 * BEAT_MS);
  assert.ok(plane.workers.threads.has(stuck));
  await clock.advance(BEAT_MS);
  assert.match(await stuck.ended, /event loop was blocked/);
  assert.match(await plane.logged("a thread died and is replaced"), /event loop was blocked/);
  await clock.advance(BEAT_MS);
  while (plane.workers.threads.size === 0) await new Promise(setImmediate);
  assert.notEqual(oneOf(plane.workers), stuck);
  assert.equal((await call(plane.url, { headers: { host: "a.test" } })).body, "hello");
  await plane.workers.refresh();
  assert.match(plane.metrics.print("prometheus"), /^gwproxy_thread_restarts_total 1$/m);
});

test("a thread that runs out of memory is replaced, and the process lives", { timeout: 60_000 }, async (t) => {
  const upstream = await startUpstream((_request, response) => void response.end("hello"));
  t.after(() => upstream.close());
  const resources = [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)];
  // Without a limit the thread would take all that the machine has.
  const plane = await startWorkers(t, resources, { count: 1, memoryBytes: 512 * 1024 * 1024 });
  const greedy = oneOf(plane.workers);
  await runInWorker(t, "const all = []; for (;;) all.push(Array.from({ length: 10_000 }, Math.random));");
  assert.match(await greedy.ended, /memory/);
  assert.match(await plane.logged("a thread died and is replaced"), /memory/);
  while (plane.workers.threads.size === 0) await new Promise(setImmediate);
  assert.equal((await call(plane.url, { headers: { host: "a.test" } })).body, "hello");
});

test("a thread that comes round is never stuck, however seldom the main thread looks", () => {
  const buffer = allocateBeats(2);
  const beats = new Int32Array(buffer);
  const watchdog = new Watchdog(buffer, 3 * BEAT_MS);
  for (const thread of [0, 1]) watchdog.reset(thread);
  for (let look = 0; look < 10; look++) {
    assert.equal(watchdog.isStuck(0), false, "it is still being loaded");
    // One beat in two looks.
    if (look % 2 === 0) beats[1] = (beats[1] ?? 0) + 1;
    assert.equal(watchdog.isStuck(1), false);
  }
});

test("only looks of the main thread count, and a successor begins anew", () => {
  const buffer = allocateBeats(1);
  const beats = new Int32Array(buffer);
  const watchdog = new Watchdog(buffer, 3 * BEAT_MS);
  const looks = (times: number): boolean[] => Array.from({ length: times }, () => watchdog.isStuck(0));
  watchdog.reset(0);
  beats[0] = 1;
  assert.deepEqual(looks(4), [false, false, false, true]);
  watchdog.reset(0);
  assert.deepEqual(looks(5), [false, false, false, false, false]);
  beats[0] = 1;
  assert.deepEqual(looks(4), [false, false, false, true]);
  assert.equal(new Watchdog(buffer, 0).isOn, false);
});

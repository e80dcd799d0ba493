/** `/debug/tasks`: listeners, connections, requests and calls in progress, and nothing of what clients have sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Task } from "../../../src/proxy/listeners/tasks.ts";
import { listener, rawClient, route, startDataPlane, staticBackend, to } from "../../support/gateway/data-plane.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

test("a request that waits for its backend is a task below its connection, until it is over", async (t) => {
  const arrived = Promise.withResolvers<() => void>();
  const upstream = await startUpstream((_request, response) => arrived.resolve(() => void response.end("late")));
  t.after(() => upstream.close());
  const { proxy, port } = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(() => proxy.close());
  const client = rawClient(port, "GET /secret-path?token=secret HTTP/1.1\r\nhost: a.test\r\n\r\n");
  t.after(() => client.socket.destroy());
  const answer = await arrived.promise;
  const { tasks, truncated } = await proxy.tasks();
  assert.equal(truncated, false);
  assert.ok(!JSON.stringify(tasks).includes("secret"));
  const [open] = tasks;
  assert.deepEqual([open?.kind, open?.name, open?.parent], ["listener", "default/gw port 80", null]);
  const [connection] = open?.children ?? [];
  assert.deepEqual(
    [connection?.kind, connection?.name, connection?.state, connection?.parent],
    ["connection", `127.0.0.1:${client.socket.localPort}`, "1 requests", open?.id],
  );
  const [request] = connection?.children ?? [];
  assert.deepEqual([request?.kind, request?.name, request?.state], ["request", "GET default/r 0", "processing"]);
  const [made] = request?.children ?? [];
  assert.deepEqual([made?.kind, made?.name, made?.state], ["call", `127.0.0.1:${upstream.port}`, "waiting"]);
  answer();
  await client.until(/late/);
  const after = await proxy.tasks();
  const idle: Task | undefined = after.tasks[0]?.children[0];
  assert.deepEqual([idle?.state, idle?.children], ["idle", []]);
});

test("the tasks of all threads are listed", async (t) => {
  const upstream = await startUpstream((_request, response) => void response.end());
  t.after(() => upstream.close());
  const { workers } = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const { tasks } = await workers.tasks();
  assert.deepEqual(
    tasks.map(({ kind }) => kind),
    ["listener", "listener"],
  );
  const profiles = await workers.profile({ kind: "cpu", seconds: 0.05, frequency: 100 });
  assert.deepEqual(profiles.map(({ thread }) => thread !== "").length, 3);
  const client = new AbortController();
  const long = workers.profile({ kind: "cpu", seconds: 300, frequency: 100 }, client.signal);
  // The threads have begun when they have answered a later question.
  await workers.tasks();
  client.abort();
  assert.equal((await long).length, 3, "no thread goes on with a profile that nobody reads");
});

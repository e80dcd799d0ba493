import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { LimitKind, type TrafficUnitSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointDump } from "../../../src/proxy/balancing/endpoint-dump.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import {
  bind,
  BIND,
  endpoints,
  listener,
  modelBackend,
  policy,
  prefix,
  rawClient,
  route,
  type Rule,
  serviceBackend,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { freePort } from "../../support/fixtures/free-ports.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startSteadyLoad } from "../../support/gateway/steady-load.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import { connections, oneOf, startWorkers } from "../../support/gateway/workers.ts";

type TrafficUnit = MessageInitShape<typeof TrafficUnitSchema>;

const REQUEST = "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n";

test("several threads serve one port, and what they count is one account", async (t) => {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const clients = await connections(t, plane.port);
  await plane.workers.refresh();
  const text = plane.metrics.print("prometheus");
  assert.match(text, new RegExp(`^gwproxy_requests_total\\{.*status="200".*\\} ${clients.length}$`, "m"));
  assert.match(text, new RegExp(`^gwproxy_request_duration_seconds_count\\{.*\\} ${clients.length}$`, "m"));
  // What is counted is handed over once.
  await plane.workers.refresh();
  assert.equal(plane.metrics.print("prometheus").split("requests_total{")[1], text.split("requests_total{")[1]);
  assert.match(text, /^gwproxy_build_info\{tag="test"\} 1$/m);
  for (const thread of [0, 1])
    assert.match(text, new RegExp(`^gwproxy_nodejs_heap_used_bytes\\{thread="${thread}"\\} \\d+$`, "m"));
  // Each thread has connections of its own to the backend.
  assert.match(text, /^gwproxy_upstream_pool_connections\{backend="\S+",state="idle"\} [1-9]\d*$/m);
});

test("names of models that strangers invent fill the metrics of no thread", async (t) => {
  const upstream = await startUpstream((request, response) => {
    request.resume();
    request.on("end", () => {
      // One kind of provider takes any name, the other none.
      response.writeHead(request.url === "/v1/chat/completions?takes=any" ? 200 : 404);
      response.end("{}");
    });
  });
  t.after(() => upstream.close());
  const pinned = route("pinned", [to("pinned", { matches: prefix("/pinned") })]);
  const free = route("r", [to("b")]);
  const backends = [modelBackend("b", upstream.port), modelBackend("pinned", upstream.port, "configured")];
  const plane = await startWorkers(t, [listener(), ...backends, free, pinned]);
  const ask = (path: string, model: string): string => {
    const body = JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] });
    return `POST ${path} HTTP/1.1\r\nhost: a.test\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  };
  const models = async (): Promise<Set<string>> => {
    await plane.workers.refresh();
    const all = plane.metrics.print("prometheus").matchAll(/duration_count\{.*gen_ai_request_model="([^"]*)"/g);
    return new Set(Array.from(all, ([, model = ""]) => model));
  };
  const askAll = async (path: string): Promise<void> => {
    const clients = await connections(t, plane.port);
    await Promise.all(
      clients.map(({ socket, until }, client) => {
        for (let at = 0; at < 25; at++) socket.write(ask(path, `invented-${client}-${at}`));
        // Not served, and so the last answer of this connection.
        socket.write(ask("/v1/messages/batches", "m"));
        return until(/HTTP\/1\.1 501 /);
      }),
    );
  };
  await askAll("/v1/chat/completions");
  assert.deepEqual(await models(), new Set(["unknown"]));
  await askAll("/pinned/chat/completions");
  assert.deepEqual(await models(), new Set(["unknown", "configured"]));
  await askAll("/v1/chat/completions?takes=any");
  const many = await models();
  assert.ok(many.size <= 102 && many.has("other") && many.has("configured"), `${many.size}`);
});

test("log lines of all threads come whole", async (t) => {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const clients = await connections(t, plane.port);
  for (let round = 0; round < 10; round++) for (const { socket } of clients) socket.write(REQUEST);
  await Promise.all(clients.map((client) => client.until(/(?:HTTP\/1\.1 200[^]*?hello){11}/)));
  await plane.workers.end();
  const lines = plane.written.join("").trimEnd().split("\n");
  assert.equal(lines.length, clients.length * 11);
  for (const line of lines) assert.equal((JSON.parse(line) as { scope: string }).scope, "request");
});

test("a local limit is one limit, whatever thread a request reaches", async (t) => {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const limitOf = (limit: number, burst = 0): Resource => {
    const rules = [{ kind: LimitKind.REQUESTS, limit, burst, unitMs: 3_600_000 }];
    return policy("limit", {
      targets: [{ target: { case: "route", value: "httproute/default/r" } }],
      units: [{ unit: { case: "localRateLimit", value: { rules } } }],
    });
  };
  const passing = async (port: number): Promise<number[]> => {
    const clients = await connections(t, port);
    const statuses = clients.map((client) => /^HTTP\/1\.1 (\d+)/.exec(client.text())?.[1]);
    return ["200", "429"].map((status) => statuses.filter((other) => other === status).length);
  };
  const objects = [listener(), route("r", [to("b")]), staticBackend("b", upstream.port), limitOf(25, 5)];
  const plane = await startWorkers(t, objects);
  assert.deepEqual(await passing(plane.port), [30, 10]);
  assert.equal(upstream.requests.length, 30);
  // What was used stays used in all threads, however the limit changes.
  await plane.set(limitOf(3));
  assert.deepEqual(await passing(plane.port), [0, 40]);
  await plane.set(limitOf(35));
  assert.deepEqual(await passing(plane.port), [5, 35]);
});

test("a thread that dies loses its own connections alone, and its successor serves what is in force", async (t) => {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/slow") waiting.push(() => response.end("late"));
    else response.end("hello");
  });
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const clients = await connections(t, plane.port);
  const lost = new Set<(typeof clients)[number]>();
  for (const client of clients) {
    client.socket.on("close", () => lost.add(client));
    client.socket.write("GET /slow HTTP/1.1\r\nhost: a.test\r\n\r\n");
  }
  while (waiting.length < clients.length) await new Promise(setImmediate);
  const victim = oneOf(plane.workers);
  victim.kill();
  await victim.ended;
  for (const end of waiting) end();
  await Promise.all(clients.map((client) => Promise.race([client.until(/late/), client.closed()])));
  assert.ok(lost.size > 0 && lost.size < clients.length, `${lost.size} of ${clients.length} were lost`);
  for (const client of clients) if (!lost.has(client)) assert.match(client.text(), /late$/);
  await plane.logged("a thread died and is replaced");
  // What comes meanwhile reaches the successor too.
  await plane.set(route("r", [to("b", { name: "changed", matches: prefix("/only") })]));
  while (plane.workers.threads.size < 2) await new Promise(setImmediate);
  const others = await connections(t, plane.port);
  for (const client of others) assert.match(client.text(), /^HTTP\/1\.1 404/);
  await plane.workers.refresh();
  assert.match(plane.metrics.print("prometheus"), /^gwproxy_thread_restarts_total 1$/m);
});

test("an endpoint that one thread puts out of rotation is out for all of them", async (t) => {
  const bad = await startUpstream((_request, response) => response.writeHead(418).end("bad"));
  const good = await startUpstream((_request, response) => response.end("good"));
  t.after(() => Promise.all([bad.close(), good.close()]));
  const health = { unhealthyCondition: "response.code == 418", eviction: { durationMs: 3_600_000 } };
  const service = serviceBackend("backend/default/b", 80, undefined, { health });
  const ports = endpoints("backend/default/b", [bad.port, good.port]);
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), service, ports]);
  while (bad.requests.length === 0) await call(plane.url);
  const clients = await connections(t, plane.port);
  for (const client of clients) assert.match(client.text(), /^HTTP\/1\.1 200/);
  assert.equal(bad.requests.length, 1);
});

test("calls in flight and failures of an endpoint are counted for all threads, without those of a dead one", async (t) => {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/slow") waiting.push(() => response.end("late"));
    else response.writeHead(500).end("hello");
  });
  t.after(() => upstream.close());
  const service = serviceBackend("backend/default/b", 80);
  const ports = endpoints("backend/default/b", [upstream.port]);
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), service, ports]);
  const record = async (): Promise<EndpointDump | undefined> => (await plane.workers.state()).endpoints[0];
  const clients = await connections(t, plane.port);
  assert.equal((await record())?.consecutiveFailures, clients.length);
  const alive = new Set(clients);
  for (const client of clients) {
    client.socket.on("close", () => alive.delete(client));
    client.socket.write("GET /slow HTTP/1.1\r\nhost: a.test\r\n\r\n");
  }
  while (waiting.length < clients.length) await new Promise(setImmediate);
  assert.equal((await record())?.pendingRequests, clients.length);
  const victim = oneOf(plane.workers);
  victim.kill();
  await plane.logged("a thread died and is replaced");
  const survivors = (await record())?.pendingRequests ?? 0;
  assert.ok(survivors > 0 && survivors < clients.length, String(survivors));
  for (const end of waiting) end();
  await Promise.all(clients.map((client) => Promise.race([client.until(/late/), client.closed()])));
  assert.equal(alive.size, survivors);
  // A thread writes the answer before it is done with it.
  while ((await record())?.pendingRequests !== 0) await new Promise(setImmediate);
});

test("a change that no thread survives is refused, and their successors serve what was there before", async (t) => {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const change = plane.workers.apply({ set: [route("r", [])], removed: [] });
  for (const thread of plane.workers.threads) thread.kill();
  assert.deepEqual((await change).refused, [
    { type: "HttpRoute", key: "httproute/default/r", reason: "no thread survived the change" },
  ]);
  while (plane.workers.threads.size < 2) await new Promise(setImmediate);
  for (const client of await connections(t, plane.port)) assert.match(client.text(), /^HTTP\/1\.1 200/);
});

test("a successor that comes while the data plane ends is told so too", async (t) => {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  plane.workers.announce();
  const victims = [...plane.workers.threads];
  for (const victim of victims) victim.kill();
  await Promise.all(victims.map(({ ended }) => ended));
  while (plane.workers.threads.size < 2) await new Promise(setImmediate);
  for (const client of await connections(t, plane.port)) assert.match(await client.closed(), /connection: close/);
});

test("threads that keep dying are replaced ever more slowly", async (t) => {
  const clock = testClock();
  const plane = await startWorkers(t, [], { count: 1, clock });
  const waits: number[] = [];
  for (let round = 0; round < 4; round++) {
    while (plane.workers.threads.size === 0) await new Promise(setImmediate);
    const thread = oneOf(plane.workers);
    thread.kill();
    await thread.ended;
    while (clock.waiting().length === 0) await new Promise(setImmediate);
    const [wait = 0] = clock.waiting();
    waits.push(wait);
    await clock.advance(wait);
  }
  const [first = 0, , , last = 0] = waits;
  assert.ok(first <= 50 && last >= 4 * first, String(waits));
});

test("a port that somebody else has is refused by name, and opened when it is free", async (t) => {
  const port = await freePort();
  const holder = createServer().listen({ port, host: "127.0.0.1", reusePort: true });
  await once(holder, "listening");
  const plane = await startWorkers(t, [listener()], { ports: (wanted) => (wanted === 81 ? port : 0) });
  const second = "81/default/gw";
  const { refused } = await plane.workers.apply({ set: [bind(second, 81)], removed: [] });
  assert.equal(refused[0]?.key, second);
  assert.match(refused[0]?.reason ?? "", /^port 81 cannot be opened: .*EADDRINUSE/);
  await new Promise((resolve) => void holder.close(resolve));
  await plane.set(route("r", []));
  assert.equal((await call(`http://127.0.0.1:${port}/`)).status, 404);
  // A Bind of ours is a foreign holder to another one.
  const third = await plane.workers.apply({ set: [bind("81/default/other", 81)], removed: [] });
  assert.match(third.refused[0]?.reason ?? "", /EADDRINUSE: port \d+ is that of 81\/default\/gw/);
  // One that goes leaves its port to one that comes.
  const fourth = { set: [], removed: [{ type: "Bind", key: second }] } as const;
  assert.deepEqual((await plane.workers.apply(fourth)).refused, []);
  assert.deepEqual(
    plane.workers.listeners().map(({ bind: key, boundPort }) => [key, boundPort]),
    [
      [BIND, plane.port],
      ["81/default/other", port],
    ],
  );
});

test("a resource that does not compile is refused once, and its last good version serves in all threads", async (t) => {
  const limit = (value: number): Resource => {
    const rules = [{ kind: LimitKind.REQUESTS, limit: value, unitMs: 3_600_000 }];
    const units: TrafficUnit[] = [{ unit: { case: "localRateLimit", value: { rules } } }];
    return policy("limit", { targets: [{ target: { case: "route", value: "httproute/default/r" } }], units });
  };
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port), limit(3)]);
  const { refused } = await plane.workers.apply({ set: [limit(0)], removed: [] });
  assert.deepEqual(
    refused.map(({ key, reason }) => [key, reason]),
    [["policy/default/limit", "a local rate limit needs a limit, a unit and a kind"]],
  );
  const { resources } = await plane.workers.state();
  assert.equal(resources.find(({ type }) => type === "Policy")?.version, limit(3).version);
  const clients = await connections(t, plane.port);
  assert.equal(clients.filter((client) => client.text().startsWith("HTTP/1.1 200")).length, 3);
});

test("a change that is acknowledged serves in every thread, and costs the other routes nothing", async (t) => {
  const context = contextOf(t);
  const [left, right] = await Promise.all([startEcho(context, { tag: "left" }), startEcho(context, { tag: "right" })]);
  const only = (path: string, backend: string): Rule => to(backend, { matches: prefix(path) });
  const plane = await startWorkers(t, [
    listener(),
    staticBackend("left", left.port),
    staticBackend("right", right.port),
    route("steady", [only("/left", "left"), only("/right", "right")]),
  ]);
  const promised = ["left", "right"].map((upstream) => ({ path: `/${upstream}`, upstream }));
  const load = startSteadyLoad(plane.url, promised, 12);
  t.after(async () => void (await load.stop()));
  for (let version = 1; version <= 25; version++) {
    const upstream = version % 2 === 0 ? "left" : "right";
    await plane.set(route("changing", [only(`/changing/${version}`, upstream)]));
    const answers = await Promise.all(Array.from({ length: 8 }, () => call(`${plane.url}/changing/${version}`)));
    assert.deepEqual(
      new Set(answers.map(({ status, headers }) => `${status} ${headers["x-upstream"]}`)),
      new Set([`200 ${upstream}`]),
    );
    await load.turned();
  }
  assert.equal((await load.stop()).opened, 12, "a change closed a connection");
});

test("a Bind that goes is closed in all threads, with the answers under way", async (t) => {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((_request, response) => waiting.push(() => response.end("late")));
  t.after(() => upstream.close());
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const clients = Array.from({ length: 20 }, () => rawClient(plane.port, REQUEST));
  while (waiting.length < clients.length) await new Promise(setImmediate);
  await plane.workers.apply({ set: [], removed: [{ type: "Bind", key: BIND }] });
  await assert.rejects(call(plane.url), /ECONNREFUSED/);
  for (const end of waiting) end();
  for (const client of clients) assert.match(await client.closed(), /connection: close\r\n[^]*late$/);
});

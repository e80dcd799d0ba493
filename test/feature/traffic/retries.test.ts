/** The rules of retries through real sockets: who is asked again, with what body, and what is counted. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import {
  documents,
  GATEWAY,
  routePolicy,
  startGateway,
  withTraffic,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { replicaService, startReplicas, type Replica } from "../../support/servers/replicas.ts";

const REQUESTS = 40;

async function behindService(t: TestContext, replicas: readonly Replica[], traffic: string): Promise<TestGateway> {
  const policy = routePolicy("again", "web", `  traffic: ${traffic}`);
  return startGateway(contextOf(t), documents(GATEWAY, replicaService(replicas), policy));
}

test("the endpoint that failed a request is not asked again while another one is there, and each attempt counts", async (t) => {
  const [bad, good] = (await startReplicas(contextOf(t), "bad", "good")) as [Replica, Replica];
  bad.answer = (_request, response) => void response.writeHead(503).end("no");
  const gateway = await behindService(t, [bad, good], "{retry: {attempts: 1, codes: [503]}}");
  for (let asked = 0; asked < REQUESTS; asked++) assert.equal((await call(gateway.url())).status, 200);
  assert.ok(bad.hits > 0);
  const dump = (await gateway.proxy.state()).endpoints;
  const of = ({ port }: Replica) => dump.find(({ endpoint }) => endpoint === `127.0.0.1:${port}`);
  assert.deepEqual([of(good)?.health, of(good)?.totalRequests, of(good)?.pendingRequests], [1, REQUESTS, 0]);
  assert.deepEqual([of(bad)?.consecutiveFailures, of(bad)?.totalRequests], [bad.hits, bad.hits]);
});

test("a refused connection and one that breaks before the answer go to another endpoint", async (t) => {
  const [refused, broken, good] = (await startReplicas(contextOf(t), "refused", "broken", "good")) as [
    Replica,
    Replica,
    Replica,
  ];
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address() as AddressInfo;
  closed.close();
  await once(closed, "close");
  broken.answer = (incoming) => incoming.socket.destroy();
  const gateway = await behindService(t, [{ ...refused, port }, broken, good], "{retry: {attempts: 2}}");
  for (let asked = 0; asked < REQUESTS; asked++) {
    const answer = await call(gateway.url(), { method: "POST", body: "again" });
    assert.deepEqual([answer.status, answer.body], [200, "good"]);
  }
  assert.ok(broken.hits > 0);
});

test("with one endpoint the same one is asked again", async (t) => {
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (_request, response) => void response.writeHead(only.hits < 3 ? 503 : 200).end();
  const gateway = await behindService(t, [only], "{retry: {attempts: 2, codes: [503]}}");
  assert.deepEqual([(await call(gateway.url())).status, only.hits], [200, 3]);
});

test("an answer that comes before the end of the request stands", async (t) => {
  const [early] = (await startReplicas(contextOf(t), "early")) as [Replica];
  const server = createServer((incoming, response) => {
    incoming.once("data", () => void response.writeHead(503).end("early"));
    early.hits++;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const gateway = await behindService(t, [{ ...early, port }], "{retry: {attempts: 3, codes: [503]}}");
  const outgoing = request(gateway.url(), { method: "POST", agent: false });
  outgoing.on("error", () => undefined);
  outgoing.write("the first part");
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  assert.deepEqual([answer.statusCode, early.hits], [503, 1]);
  outgoing.destroy();
});

test("a request that may be tried again streams all the same, and one that grows too long is tried once", async (t) => {
  const received: string[] = [];
  const server = createServer((incoming, response) => {
    incoming.setEncoding("utf8").once("data", (chunk: string) => {
      received.push(chunk);
      response.writeHead(200);
      response.write(chunk);
    });
    incoming.on("end", () => response.end("!"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const gateway = await withTraffic(contextOf(t), port, "{retry: {attempts: 3, codes: [503]}}");
  const outgoing = request(gateway.url(), { method: "POST", agent: false });
  outgoing.write("ping");
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  assert.deepEqual([answer.statusCode, received], [200, ["ping"]]);
  outgoing.end();
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += chunk as string;
  assert.equal(text, "ping!");
});

test("a body that grows beyond what is kept makes the last answer stand", async (t) => {
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (_request, response) => void response.writeHead(503).end();
  const gateway = await behindService(t, [only], "{retry: {attempts: 3, codes: [503]}}");
  const headers = { "transfer-encoding": "chunked" };
  const long = await call(gateway.url(), { method: "POST", headers, body: "x".repeat(64 * 1024 + 1) });
  assert.deepEqual([long.status, only.hits], [503, 1]);
  const short = await call(gateway.url(), { method: "POST", headers, body: "x".repeat(64 * 1024) });
  assert.deepEqual([short.status, only.hits], [503, 5]);
});

test("what a client says about attempts is not believed", async (t) => {
  const seen: unknown[] = [];
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (incoming, response) => {
    seen.push(incoming.headers["x-retry-attempt"]);
    response.writeHead(seen.length === 2 ? 503 : 200).end();
  };
  const gateway = await behindService(t, [only], "{retry: {codes: [503]}}");
  for (let asked = 0; asked < 2; asked++) await call(gateway.url(), { headers: { "x-retry-attempt": "9" } });
  assert.deepEqual(seen, [undefined, undefined, "1"]);
});

test("a short answer that is thrown away leaves its connection open, a long one does not", async (t) => {
  const sockets = new Set<Socket>();
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  let size = 10;
  only.answer = (incoming, response) => {
    sockets.add(incoming.socket);
    if (only.hits % 2 === 0) {
      response.end("good");
      return;
    }
    response.writeHead(503);
    response.write("x".repeat(size));
    setImmediate(() => response.end("x".repeat(size)));
  };
  const gateway = await behindService(t, [only], "{retry: {codes: [503], backoff: 20ms}}");
  for (let asked = 0; asked < 3; asked++) assert.equal((await call(gateway.url())).body, "good");
  assert.equal(sockets.size, 1);
  size = 200_000;
  assert.equal((await call(gateway.url())).body, "good");
  assert.equal(sockets.size, 2);
});

test("a refusal of a policy and an answer that nobody listed are not tried again", async (t) => {
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (_request, response) => void response.writeHead(500).end();
  const traffic = `{retry: {attempts: 3, codes: [503]}, authorization: {policy: {matchExpressions: ['request.path == "/open"']}}}`;
  const gateway = await behindService(t, [only], traffic);
  assert.deepEqual([(await call(`${gateway.url()}/shut`)).status, only.hits], [403, 0]);
  assert.deepEqual([(await call(`${gateway.url()}/open`)).status, only.hits], [500, 1]);
});

test("a gRPC call whose status the condition names is made again, and the status in trailers lowers the score", async (t) => {
  let calls = 0;
  const upstream = await startHttp2Upstream(t, (stream) => {
    const status = ["14", "0", "5"][calls++] ?? "0";
    const head = { ":status": 200, "content-type": "application/grpc" };
    if (status === "14") stream.respond({ ...head, "grpc-status": status }, { endStream: true });
    else {
      stream.respond(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
      stream.end("message");
    }
  });
  const condition = `response.grpcStatus == 14`;
  const gateway = await withTraffic(contextOf(t), upstream.port, `{retry: {attempts: 1, condition: '${condition}'}}`);
  const session = await connectHttp2(gateway.url());
  t.after(() => session.destroy());
  const head = {
    ":method": "POST",
    ":path": "/svc/Method",
    ":authority": "web",
    "content-type": "application/grpc",
    te: "trailers",
  };
  const healthOf = async () => (await gateway.proxy.state()).endpoints.map(({ health }) => health);
  const first = await sendHttp2(session, head, { body: "hello" });
  assert.deepEqual([first.status, first.body.toString(), calls], [200, "message", 2]);
  assert.deepEqual(await healthOf(), [0.3 + 0.7 * 0.7]);
  await sendHttp2(session, head, { body: "hello" });
  assert.deepEqual(await healthOf(), [0.7 * (0.3 + 0.7 * 0.7)]);
});

test("an endpoint that takes too long is left for another one; time that runs out for the whole request ends it", async (t) => {
  const [slow, good] = (await startReplicas(contextOf(t), "slow", "good")) as [Replica, Replica];
  slow.answer = () => undefined;
  const gateway = await behindService(t, [slow, good], "{retry: {attempts: 1}}");
  await gateway.change(
    documents(
      GATEWAY,
      replicaService([slow, good]).replace("{name: rule,", "{name: rule, timeouts: {backendRequest: 1s},"),
      routePolicy("again", "web", "  traffic: {retry: {attempts: 1}}"),
    ),
  );
  while (slow.hits < 2) assert.equal((await call(gateway.url())).status, 200);
  await gateway.change(
    documents(
      GATEWAY,
      replicaService([slow]),
      routePolicy("again", "web", "  traffic: {retry: {attempts: 3}, timeouts: {request: 2s}}"),
    ),
  );
  const { hits } = slow;
  const answer = await call(gateway.url());
  assert.deepEqual([answer.status, answer.body, slow.hits - hits], [504, "request timeout", 1]);
});

test("a body that is cut by the limit of an attempt is not made again, and counts against the endpoint", async (t) => {
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (_request, response) => void response.writeHead(200).write("half of it");
  const gateway = await startGateway(
    contextOf(t),
    documents(
      GATEWAY,
      replicaService([only]).replace("{name: rule,", "{name: rule, timeouts: {backendRequest: 1s},"),
      routePolicy("again", "web", "  traffic: {retry: {attempts: 3}}"),
    ),
  );
  await assert.rejects(call(gateway.url()));
  const dump = async () => (await gateway.proxy.state()).endpoints[0];
  // The client sees the cut before the gateway has seen the end of its connection.
  while ((await dump())?.pendingRequests !== 0) await nextTurn();
  assert.deepEqual([only.hits, (await dump())?.health], [1, 0.7]);
});

test("without a policy a POST is sent once, and with one the policies of the route run once", async (t) => {
  const [only] = (await startReplicas(contextOf(t), "only")) as [Replica];
  only.answer = (incoming) => void incoming.socket.destroy();
  const once = await behindService(t, [only], "{timeouts: {request: 10s}}");
  assert.equal((await call(once.url(), { method: "POST", body: "x" })).status, 503);
  assert.equal(only.hits, 1);
  only.answer = (_request, response) => void response.writeHead(only.hits % 3 === 1 ? 200 : 503).end();
  const limit = `rateLimit: {local: [{requests: 2, unit: Hours}]}`;
  const limited = await behindService(t, [only], `{retry: {attempts: 2, codes: [503]}, ${limit}}`);
  const statuses = [];
  for (let asked = 0; asked < 3; asked++) statuses.push((await call(limited.url())).status);
  assert.deepEqual([statuses, only.hits], [[200, 200, 429], 7]);
});

test("an upstream whose name has no address may be asked again, and health hears of it", async (t) => {
  const manifests = documents(
    GATEWAY,
    `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  static: {host: nobody.invalid, port: 80}`,
    `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]`,
    routePolicy("again", "web", "  traffic: {retry: {attempts: 2}}"),
  );
  const gateway = await startGateway(contextOf(t), manifests);
  assert.equal((await call(gateway.url())).status, 503);
  const [dump] = (await gateway.proxy.state()).endpoints;
  assert.deepEqual([dump?.totalRequests, dump?.consecutiveFailures], [3, 3]);
});

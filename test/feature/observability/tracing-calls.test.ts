/** Spans of the calls that are made for a traced request: attempts, policies, copies, models, and what is no HTTP any more. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect as connectSocket } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { Authorization, CheckRequestSchema } from "../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import { methodDefinition } from "../../../src/lib/grpc.ts";
import { ALLOW, DENY, startAuthServer } from "../../support/servers/auth-server.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { gatewayPolicy, GATEWAY, route, routePolicy, staticBackend } from "../../support/gateway/gateway.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { pass, startProcServer } from "../../support/servers/proc-server.ts";
import { HEADERS_ONLY, PROC } from "../../support/gateway/with-ext-proc.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startRateServer } from "../../support/servers/rate-server.ts";
import { replicaService, startReplicas } from "../../support/servers/replicas.ts";
import { ALWAYS, CLIENT, ERROR, only, PARENT, SERVER, startTraced, TRACEPARENT } from "../../support/gateway/traced.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { startWebSocketEcho } from "../../support/servers/web-socket.ts";
import type { CollectedSpan } from "../../testbed/collector.ts";

function serverOf(spans: readonly CollectedSpan[]): CollectedSpan {
  return only(spans, ({ kind }) => kind === SERVER);
}

/** Those of calls, checked to be children of the one request. */
function callsOf(spans: readonly CollectedSpan[], kind = "Primary"): CollectedSpan[] {
  const { traceId, spanId } = serverOf(spans);
  const calls = spans.filter((span) => span.kind === CLIENT && span.attributes["outbound.kind"] === kind);
  for (const span of calls) assert.deepEqual([span.traceId, span.parentSpanId], [traceId, spanId]);
  return calls;
}

function spanIdOf(traceparent: unknown): string {
  return String(traceparent).split("-")[2] ?? "";
}

test("each attempt is a span of its own, and its upstream is told of that one", async (t) => {
  const context = contextOf(t);
  const heard: unknown[] = [];
  const upstream = await startUpstream((request, response) => {
    heard.push(request.headers["traceparent"]);
    response.writeHead(heard.length < 3 ? 503 : 200).end();
  });
  t.after(() => upstream.close());
  const retry = routePolicy("again", "web", "  traffic: {retry: {attempts: 3, codes: [503]}}");
  const { url, spans } = await startTraced(context, { port: upstream.port, more: [retry] });
  assert.equal((await call(url)).status, 200);
  const got = await spans();
  const calls = callsOf(got);
  assert.deepEqual(
    calls.map(({ status, attributes }) => [status, attributes["http.status"], attributes["error.type"]]),
    [
      [ERROR, 503, "503"],
      [ERROR, 503, "503"],
      [0, 200, undefined],
    ],
  );
  assert.deepEqual(
    heard.map(spanIdOf),
    calls.map(({ spanId }) => spanId),
  );
  assert.equal(new Set(heard).size, 3);
  const { attributes } = serverOf(got);
  assert.deepEqual([attributes["retry.attempt"], attributes["http.request.resend_count"]], [2, 2]);
});

test("an endpoint of a Service is a call to that Service; a failure names its kind", async (t) => {
  const context = contextOf(t);
  const replicas = await startReplicas(context, "one");
  const base = [GATEWAY, replicaService(replicas)];
  const traced = await startTraced(context, { port: 1, base });
  await call(traced.url);
  const [span] = callsOf(await traced.spans());
  assert.match(span?.name ?? "", /^GET [a-z]+\.default\.svc\.cluster\.local:\d+$/);

  const refused = await startTraced(context, { port: await deadPort() });
  assert.equal((await call(refused.url)).status, 503);
  const got = await refused.spans();
  const failed = only(callsOf(got));
  assert.deepEqual([failed.status, failed.attributes["error.type"]], [ERROR, "upstream_unreachable"]);
  const server = serverOf(got);
  assert.deepEqual([server.status, server.attributes["reason"]], [ERROR, "UpstreamFailure"]);
  assert.match(server.message, /^upstream call failed/);
});

test("an answer that breaks off is a failed call", async (t) => {
  const port = await startSocket(contextOf(t), (socket) => {
    socket.on("data", () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx");
      setImmediate(() => socket.destroy());
    });
  });
  const { url, spans } = await startTraced(contextOf(t), { port });
  await assert.rejects(call(url));
  const span = only(callsOf(await spans()));
  assert.deepEqual(
    [span.status, span.attributes["http.status"], span.attributes["error.type"]],
    [ERROR, 200, "upstream_broken"],
  );
});

test("a client that goes away ends the spans of its request", async (t) => {
  const context = contextOf(t);
  const reached = Promise.withResolvers<void>();
  const upstream = await startUpstream(() => reached.resolve());
  t.after(() => upstream.close());
  const { url, spans } = await startTraced(context, { port: upstream.port });
  const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await reached.promise;
  socket.destroy();
  const got = await spans();
  assert.equal(serverOf(got).attributes["http.status"], 499);
  const span = only(callsOf(got));
  assert.deepEqual([span.status, span.attributes["error.type"]], [ERROR, "ClientClosed"]);
});

test("policies that ask services are children of the request and carry its trace, over gRPC and over HTTP", async (t) => {
  const context = contextOf(t);
  const [{ port, seen }, checker] = [await startEcho(context), await startEcho(context)];
  const auth = await startAuthServer(context);
  const rates = await startRateServer(context);
  const proc = await startProcServer(context, (message) => pass(message));
  const ref = (name: string) => `backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}`;
  const more = [
    staticBackend("auth", auth.port),
    staticBackend("rates", rates.port),
    staticBackend("proc", proc.port),
    staticBackend("checker", checker.port),
    routePolicy("auth", "web", `  traffic: {extAuth: {${ref("auth")}, grpc: {}}}`),
    routePolicy(
      "rates",
      "web",
      `  traffic: {rateLimit: {global: {${ref("rates")}, domain: d, descriptors: [{entries: [{name: a, expression: '"1"'}]}]}}}`,
    ),
    routePolicy("proc", "web", `  traffic: {extProc: {${PROC}, ${HEADERS_ONLY}}}`),
    gatewayPolicy(
      "first",
      `  traffic: {phase: PreRouting, extAuth: {${ref("checker")}, http: {path: '"/check?key=1"', allowedRequestHeaders: [traceparent]}}}`,
    ),
  ];
  const { url, spans } = await startTraced(context, { port, more });
  assert.equal((await call(url, { headers: { traceparent: TRACEPARENT, tracestate: "a=1" } })).status, 200);
  const got = await spans();
  const calls = callsOf(got, "Policy");
  assert.deepEqual(calls.map(({ name, attributes }) => [name, attributes["outbound.subtype"]]).toSorted(), [
    [`GET 127.0.0.1:${checker.port}`, "ExtAuthz"],
    ["envoy.service.auth.v3.Authorization/Check", "ExtAuthz"],
    ["envoy.service.ext_proc.v3.ExternalProcessor/Process", "ExtProc"],
    ["envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", "RateLimit"],
  ]);
  assert.ok(calls.every(({ status }) => status === 0));
  const named = (name: string): CollectedSpan => only(calls, (span) => span.name.includes(name));
  assert.deepEqual(
    [auth.metadata[0]?.get("traceparent"), auth.metadata[0]?.get("tracestate")],
    [`00-${PARENT.traceId}-${named("Authorization").spanId}-01`, "a=1"],
  );
  for (const unary of ["Authorization", "RateLimit"]) assert.equal(named(unary).attributes["grpc.status"], 0);
  const http = named("GET ");
  assert.deepEqual(
    [checker.seen[0]?.headers["traceparent"], http.attributes["http.path"], http.attributes["http.status"]],
    [`00-${PARENT.traceId}-${http.spanId}-01`, "/check", 200],
  );
  assert.equal(spanIdOf(seen[0]?.headers["traceparent"]), only(callsOf(got)).spanId);
});

test("a policy that cannot ask its service leaves a failed span; one that refuses does not", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const refusing = await startAuthServer(context, () => DENY);
  for (const [at, type, grpc] of [
    [await deadPort(), "UNAVAILABLE", 14],
    [refusing.port, undefined, 0],
  ] as const) {
    const more = [
      staticBackend("auth", at),
      routePolicy(
        "auth",
        "web",
        "  traffic: {extAuth: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: auth}, grpc: {}}}",
      ),
    ];
    const { url, spans } = await startTraced(context, { port, more });
    assert.equal((await call(url)).status, 403);
    const got = await spans();
    const span = only(callsOf(got, "Policy"));
    assert.deepEqual(
      [span.status, span.attributes["error.type"], span.attributes["grpc.status"]],
      [type === undefined ? 0 : ERROR, type, grpc],
    );
    assert.equal(callsOf(got).length, 0);
  }
});

test("a request that is not traced asks its policies without a trace", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const auth = await startAuthServer(context, () => ALLOW);
  const more = [
    staticBackend("auth", auth.port),
    routePolicy(
      "auth",
      "web",
      "  traffic: {extAuth: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: auth}, grpc: {}}}",
    ),
  ];
  const { url, spans } = await startTraced(context, { port, more, tracing: 'clientSampling: "false"' });
  await call(url, { headers: { traceparent: TRACEPARENT } });
  assert.equal(auth.metadata[0]?.get("traceparent"), undefined);
  assert.deepEqual(await spans(), []);
});

test("a copy is a call of its own, also when it outlasts its request", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const waiting: (() => void)[] = [];
  const heard: IncomingMessage[] = [];
  const slow = createServer((request, response) => {
    heard.push(request);
    waiting.push(() => response.writeHead(204).end());
  });
  slow.listen(0, "127.0.0.1");
  await once(slow, "listening");
  t.after(() => {
    slow.closeAllConnections();
    slow.close();
  });
  const to = (name: string) => `{group: gwproxy.dev, kind: GwBackend, name: ${name}}`;
  const web = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules:
    - backendRefs: [${to("web")}]
      filters: [{type: RequestMirror, requestMirror: {backendRef: ${to("copies")}}}]
`;
  // A TCP server's address is one.
  const { port: copies } = slow.address() as { port: number };
  const base = [GATEWAY, staticBackend("web", port), staticBackend("copies", copies), web];
  const { url, spans } = await startTraced(context, { port, base });
  await call(url);
  while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (const answer of waiting) answer();
  const got = await spans();
  const copy = only(callsOf(got, "Mirror"));
  assert.deepEqual([copy.name, copy.attributes["http.status"]], [`GET 127.0.0.1:${copies}`, 204]);
  assert.equal(spanIdOf(heard[0]?.headers["traceparent"]), copy.spanId);
  assert.ok(copy.end > serverOf(got).end);
  assert.equal(callsOf(got).length, 1);
});

test("a call of a model is named after it, plain and streamed", async (t) => {
  const context = contextOf(t);
  const provider = await startMockProvider(context);
  for (const stream of [false, true]) {
    const base = [GATEWAY, mockBackend(provider.port), route("ai", "ai")];
    const { url, spans } = await startTraced(context, { port: 1, base });
    const body = JSON.stringify({ model: "gpt-4o", stream, messages: [{ role: "user", content: "hi" }] });
    const headers = { "content-type": "application/json" };
    assert.equal((await call(`${url}/v1/chat/completions`, { method: "POST", headers, body })).status, 200);
    const got = await spans();
    const span = only(callsOf(got));
    assert.equal(span.name, "chat gpt-4o");
    const { attributes } = span;
    assert.deepEqual(
      ["outbound.subtype", "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "http.status"].map(
        (name) => attributes[name],
      ),
      ["Llm", "chat", "openai", "gpt-4o", 200],
    );
    const server = serverOf(got);
    assert.deepEqual([server.attributes["gen_ai.request.model"], server.attributes["protocol"]], ["gpt-4o", "llm"]);
    assert.ok(Number(server.attributes["gen_ai.usage.output_tokens"]) > 0);
    assert.ok(span.end <= server.end);
  }
});

async function askGrpc(context: ProofContext, url: string): Promise<ServiceError | null> {
  const client = new Client(url.slice("http://".length), credentials.createInsecure());
  context.after(() => client.close());
  const { path, requestSerialize, responseDeserialize } = methodDefinition(Authorization.method.check);
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, create(CheckRequestSchema), resolve);
  });
}

test("a gRPC request is named after its method, and its status comes from the trailers", async (t) => {
  const context = contextOf(t);
  const server = await startAuthServer(context);
  const { url, spans } = await startTraced(context, { port: server.port });
  assert.equal(await askGrpc(context, url), null);
  const got = await spans();
  const span = serverOf(got);
  assert.equal(span.name, "envoy.service.auth.v3.Authorization/Check");
  assert.deepEqual(
    [span.attributes["grpc.status"], span.attributes["rpc.grpc.status_code"], span.attributes["http.version"]],
    [0, 0, "HTTP/2.0"],
  );
  assert.equal(server.metadata[0]?.get("traceparent"), `00-${span.traceId}-${only(callsOf(got)).spanId}-01`);
});

test("a stream over HTTP/2 ends its spans with its last byte", async (t) => {
  const context = contextOf(t);
  const finish = Promise.withResolvers<void>();
  const upstream = await startUpstream((_request, response) => {
    response.write("first");
    void finish.promise.then(() => response.end("last"));
  });
  t.after(() => upstream.close());
  const { url, spans } = await startTraced(context, { port: upstream.port });
  const session = await connectHttp2(url);
  const stream = session.request({ ":path": "/", ":authority": "a.test" });
  await once(stream, "data");
  const halfway = BigInt(Date.now()) * 1_000_000n;
  finish.resolve();
  stream.resume();
  await once(stream, "end");
  session.close();
  const got = await spans();
  const span = only(callsOf(got));
  assert.ok(serverOf(got).end >= halfway - 2_000_000n && span.start < halfway);
  assert.ok(span.end <= serverOf(got).end);
});

test("the span of a WebSocket lasts as long as its connection", async (t) => {
  const context = contextOf(t);
  const { port, seen, sockets } = await startWebSocketEcho(context);
  const { url, spans } = await startTraced(context, { port });
  const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
  socket.write(
    "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await once(socket, "data");
  const open = BigInt(Date.now()) * 1_000_000n;
  socket.destroy();
  for (const each of sockets) each.destroy();
  const got = await spans();
  const server = serverOf(got);
  assert.equal(server.attributes["http.status"], 101);
  assert.ok(server.end >= open - 2_000_000n);
  const span = only(callsOf(got));
  assert.equal(span.attributes["http.status"], 101);
  assert.equal(spanIdOf(seen[0]?.headers["traceparent"]), span.spanId);
});

test("CONNECT through the gateway is a call whose bytes carry no trace", async (t) => {
  const context = contextOf(t);
  const heard: string[] = [];
  const port = await startSocket(context, (socket) => {
    socket.on("data", (chunk: Buffer) => {
      heard.push(chunk.toString());
      socket.end("done");
    });
  });
  const mode = gatewayPolicy("connect", "  frontend: {connect: {mode: Route}}");
  const { url, spans } = await startTraced(context, { port, more: [mode] });
  const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
  socket.write("CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n");
  await once(socket, "data");
  socket.write("hello");
  socket.resume();
  await once(socket, "end");
  socket.end();
  await once(socket, "close");
  const got = await spans();
  assert.deepEqual(heard, ["hello"]);
  assert.equal(serverOf(got).name, "CONNECT /*");
  assert.equal(only(callsOf(got)).name, `CONNECT 127.0.0.1:${port}`);
});

test("a request has no more spans than a hundred and twenty-eight, and goes on without", async (t) => {
  const context = contextOf(t);
  const upstream = await startUpstream((_request, response) => void response.writeHead(503).end());
  t.after(() => upstream.close());
  const more = [routePolicy("again", "web", "  traffic: {retry: {attempts: 20, codes: [503]}}")];
  const { url, spans } = await startTraced(context, { port: upstream.port, more, tracing: ALWAYS });
  const session = await connectHttp2(url);
  assert.equal((await sendHttp2(session, { ":path": "/", ":authority": "a.test" })).status, 503);
  session.close();
  assert.equal(callsOf(await spans()).length, upstream.requests.length);
});

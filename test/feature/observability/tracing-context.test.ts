/** Trace context through real sockets: which parents are believed, what upstreams are told, and what the log says of it. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { startEcho } from "../../support/servers/echo.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { ALWAYS, CLIENT, ERROR, only, PARENT, SERVER, startTraced, TRACEPARENT } from "../../support/gateway/traced.ts";

const NO_CLIENT = `${ALWAYS}, clientSampling: "false"`;

/** The ids that an upstream was told. */
function told(traceparent: string | undefined): { traceId: string; spanId: string; flags: string } {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? "") ?? [];
  assert.ok(traceId !== undefined && spanId !== undefined && flags !== undefined, traceparent);
  return { traceId, spanId, flags };
}

test("a request joins the trace of its client, and its upstream that of the call", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, { port });
  const tracestate = "vendor=1,other=a:b";
  const baggage = "user=alice;p=1, tenant=x";
  await call(url, { headers: { traceparent: TRACEPARENT, tracestate, baggage } });
  const got = await spans();
  const server = only(got, ({ kind }) => kind === SERVER);
  const client = only(got, ({ kind }) => kind === CLIENT);
  assert.deepEqual([server.traceId, server.parentSpanId], [PARENT.traceId, PARENT.spanId]);
  assert.deepEqual([client.traceId, client.parentSpanId], [PARENT.traceId, server.spanId]);
  assert.deepEqual([server.traceState, client.traceState], [tracestate, tracestate]);
  const headers = seen[0]?.headers;
  assert.deepEqual(told(headers?.["traceparent"]), { traceId: PARENT.traceId, spanId: client.spanId, flags: "01" });
  assert.deepEqual([headers?.["tracestate"], headers?.["baggage"]], [tracestate, baggage]);
});

test("a client that does not record is recorded by clientSampling, and its flags go on", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, { port });
  await call(url, { headers: { traceparent: TRACEPARENT.replace(/01$/, "00") } });
  const got = await spans();
  const client = only(got, ({ kind }) => kind === CLIENT);
  assert.equal(got.length, 2);
  assert.deepEqual(told(seen[0]?.headers["traceparent"]), {
    traceId: PARENT.traceId,
    spanId: client.spanId,
    flags: "00",
  });
});

test("the header of a request that is not traced goes on untouched, however odd it is", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, {
    port,
    tracing: 'randomSampling: "false", clientSampling: "false"',
  });
  const odd = [TRACEPARENT, "00-zz", "", `cc-${PARENT.traceId}-${PARENT.spanId}-ff-more`, TRACEPARENT.toUpperCase()];
  for (const traceparent of odd) await call(url, { headers: { traceparent } });
  await call(url);
  assert.deepEqual(
    seen.map(({ headers }) => headers["traceparent"]),
    [...odd, undefined],
  );
  assert.deepEqual(await spans(), []);
});

test("what is no valid traceparent begins a trace of its own, and the upstream hears of that one alone", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, { port, tracing: NO_CLIENT });
  const hostile: (string | string[])[] = [
    TRACEPARENT.replace(/^00/, "ff"),
    TRACEPARENT.replace(PARENT.traceId, "0".repeat(32)),
    TRACEPARENT.replace(PARENT.spanId, "0".repeat(16)),
    TRACEPARENT.toUpperCase(),
    `${TRACEPARENT}-00`,
    TRACEPARENT.slice(0, -1),
    `${TRACEPARENT}, ${TRACEPARENT}`,
    "x".repeat(8000),
    "é".repeat(55),
    "%0d%0ax-evil: 1",
    [TRACEPARENT, TRACEPARENT],
    [TRACEPARENT, "00-zz"],
  ];
  for (const traceparent of hostile)
    assert.equal((await call(url, { headers: { traceparent: traceparent as string } })).status, 200);
  const got = await spans();
  assert.equal(got.length, hostile.length * 2);
  const ids = got.map(({ traceId }) => traceId);
  assert.ok(!ids.includes(PARENT.traceId));
  assert.equal(new Set(ids).size, hostile.length, "each request has a trace of its own");
  const heard = seen.map(({ headers }) => told(headers["traceparent"]));
  assert.deepEqual(
    heard.map(({ spanId }) => spanId).toSorted(),
    got
      .filter(({ kind }) => kind === CLIENT)
      .map(({ spanId }) => spanId)
      .toSorted(),
  );
  assert.ok(heard.every(({ flags }) => flags === "01"));
});

test("two traceparent fields are no parent over HTTP/2 either, and a later version is read by its first members", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const { url, spans } = await startTraced(context, { port });
  const session = await connectHttp2(url);
  const send = (traceparent: string | string[]) =>
    sendHttp2(session, { ":path": "/", ":authority": "a.test", traceparent });
  assert.equal((await send([TRACEPARENT, TRACEPARENT])).status, 200);
  assert.equal((await send(TRACEPARENT.replace(/^00/, "01").concat("-what-comes"))).status, 200);
  session.close();
  const servers = (await spans()).filter(({ kind }) => kind === SERVER);
  assert.deepEqual(
    servers.map(({ traceId, parentSpanId }) => [traceId === PARENT.traceId, parentSpanId]),
    [
      [false, ""],
      [true, PARENT.spanId],
    ],
  );
  for (const { attributes } of servers)
    assert.deepEqual([attributes["http.version"], attributes["network.protocol.version"]], ["HTTP/2.0", "2"]);
});

test("a request that no listener or route takes is traced, and says why it failed; one that is malformed is not", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const base = [
    `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners: [{name: http, port: 8080, protocol: HTTP, hostname: a.test}]
`,
  ];
  const { url, spans } = await startTraced(context, { port, base });
  assert.equal((await call(url, { headers: { host: "b.test" } })).status, 404);
  assert.equal((await call(url, { headers: { host: "a.test" } })).status, 404);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: a.test\r\nhost: a.test\r\n\r\n");
  assert.match(await text(socket), /^HTTP\/1\.1 400 /);
  const got = await spans();
  assert.deepEqual(
    got.map(({ name, status, message, attributes }) => [
      name,
      status,
      message,
      attributes["reason"],
      attributes["error.type"],
    ]),
    [
      ["unknown", ERROR, "listener not found", "NotFound", "NotFound"],
      ["unknown", ERROR, "route not found", "NotFound", "NotFound"],
    ],
  );
});

test("names of spans come from the match and never from the path", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const match = (type: string, value: string) => `{path: {type: ${type}, value: "${value}"}}`;
  const named = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: named}
spec:
  parentRefs: [{name: gw}]
  rules:
    - matches: [${match("Exact", "/exact")}, ${match("PathPrefix", "/under/")}, ${match("RegularExpression", "/r[0-9]+")}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]
`;
  const { url, spans } = await startTraced(context, { port, more: [named] });
  for (const path of ["/exact?a=b", "/under", "/under/a/b", "/r12", "/other"]) await call(url + path);
  assert.deepEqual(
    (await spans()).filter(({ kind }) => kind === SERVER).map(({ name }) => name),
    ["GET /exact", "GET /under/*", "GET /under/*", "GET /r[0-9]+", "GET /*"],
  );
});

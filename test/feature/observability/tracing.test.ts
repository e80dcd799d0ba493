/** GwPolicy spec.frontend.tracing through real sockets, with a real OpenTelemetry collector: each field shows in what arrives. */
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, gatewayPolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";
import { ALWAYS, CLIENT, ERROR, only, SERVER, startTraced, TRACEPARENT } from "../../support/gateway/traced.ts";
import type { CollectedSpan } from "../../testbed/collector.ts";

const FIELD = "GwPolicy spec.frontend.tracing";

/** Paths of the requests that were traced. */
function paths(spans: readonly CollectedSpan[]): unknown[] {
  return spans.filter(({ kind }) => kind === SERVER).map(({ attributes }) => attributes["http.path"]);
}

prove(
  [`${FIELD}.backendRef.group`, `${FIELD}.backendRef.kind`, `${FIELD}.backendRef.name`],
  "the spans of a request reach a collector over gRPC, and those of the export itself do not exist",
  async (context) => {
    const { port } = await startEcho(context);
    const { url, spans } = await startTraced(context, { port });
    const before = BigInt(Date.now()) * 1_000_000n;
    assert.equal((await call(`${url}/items?secret=1`, { method: "PUT", body: "x" })).status, 200);
    const got = await spans();
    assert.equal(got.length, 2);
    const server = only(got, ({ kind }) => kind === SERVER);
    const client = only(got, ({ kind }) => kind === CLIENT);
    assert.equal(server.name, "PUT /*");
    assert.equal(client.name, `PUT 127.0.0.1:${port}`);
    assert.match(server.traceId, /^[0-9a-f]{32}$/);
    assert.deepEqual([client.traceId, client.parentSpanId], [server.traceId, server.spanId]);
    assert.equal(server.parentSpanId, "");
    assert.equal(server.scope, "gwproxy.tracing");
    for (const span of got) {
      assert.ok(span.start >= before - 5_000_000n && span.end >= span.start, `${span.start} to ${span.end}`);
      assert.equal(span.status, 0);
      assert.ok(
        !JSON.stringify(Object.entries(span.attributes).filter(([name]) => name !== "url.query")).includes("secret"),
      );
    }
    assert.ok(server.start <= client.start && client.end <= server.end);
    const { attributes } = server;
    const expected = {
      gateway: "default/gw",
      listener: "http",
      route: "default/web",
      route_rule: "rule",
      endpoint: `127.0.0.1:${port}`,
      "http.method": "PUT",
      "http.request.method": "PUT",
      "http.path": "/items",
      "url.path": "/items",
      "http.version": "HTTP/1.1",
      "network.protocol.version": "1.1",
      "http.status": 200,
      "http.response.status_code": 200,
      "url.scheme": "http",
      protocol: "http",
      "trace.id": server.traceId,
      "span.id": server.spanId,
    };
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(attributes[name], value, name);
    assert.deepEqual(client.attributes, {
      "outbound.kind": "Primary",
      "outbound.subtype": "Http",
      "http.method": "PUT",
      "http.host": url.slice("http://".length),
      "http.path": "/items",
      "http.status": 200,
    });
  },
);

const COLLECTOR_ELSEWHERE = (port: number): string => `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: spans, namespace: infra}
spec:
  from: [{group: gwproxy.dev, kind: GwPolicy, namespace: default}]
  to: [{group: "", kind: Service}]
---
apiVersion: v1
kind: Service
metadata: {name: telemetry, namespace: infra}
spec:
  ports: [{name: other, port: 9001}, {name: grpc, port: 4317}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: telemetry-a, namespace: infra, labels: {kubernetes.io/service-name: telemetry}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{name: grpc, port: ${port}}, {name: other, port: 1}]
`;

prove(
  [`${FIELD}.backendRef.namespace`, `${FIELD}.backendRef.port`, `${FIELD}.backendRef.name`],
  "the collector may be a Service of another namespace",
  async (context) => {
    const { port } = await startEcho(context);
    const traced = await startTraced(context, {
      port,
      place: () => "backendRef: {name: telemetry, namespace: infra, port: 4317}",
    });
    await traced.gateway.change([traced.manifests, COLLECTOR_ELSEWHERE(traced.collector.grpcPort)].join("\n---\n"));
    await call(traced.url);
    assert.equal((await traced.spans()).length, 2);
  },
);

prove(`${FIELD}.url`, "a collector may be named by its address", async (context) => {
  const { port } = await startEcho(context);
  const { url, spans } = await startTraced(context, {
    port,
    place: ({ grpcPort }) => `url: "http://127.0.0.1:${grpcPort}"`,
  });
  await call(url);
  assert.equal((await spans()).length, 2);
});

prove([`${FIELD}.protocol`, `${FIELD}.url`], "spans go over HTTP to the usual path", async (context) => {
  const { port } = await startEcho(context);
  const { url, spans } = await startTraced(context, {
    port,
    place: ({ httpPort }) => `url: "http://127.0.0.1:${httpPort}", protocol: HTTP`,
  });
  await call(url);
  assert.equal((await spans()).length, 2);
});

prove([`${FIELD}.path`, `${FIELD}.protocol`], "or to another one", async (context) => {
  const { port } = await startEcho(context);
  const { port: other, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, {
    port,
    place: () => `url: "http://127.0.0.1:${other}", protocol: HTTP, path: /otlp/spans?tenant=a`,
  });
  await call(url);
  await spans();
  assert.deepEqual(
    seen.map(({ method, url: target, headers }) => [method, target, headers["content-type"]]),
    [["POST", "/otlp/spans?tenant=a", "application/x-protobuf"]],
  );
});

prove(
  [`${FIELD}.attributes.add[].name`, `${FIELD}.attributes.add[].expression`],
  "attributes are added, replace others of their name, and name the span; what fails is left out",
  async (context) => {
    const { port } = await startEcho(context);
    const add = [
      `{name: team, expression: 'request.headers["x-team"]'}`,
      `{name: sizes, expression: '[response.code, 2.5]'}`,
      `{name: whole, expression: '{"a": {"b": true}}'}`,
      `{name: http.method, expression: '"replaced"'}`,
      `{name: missing, expression: 'request.headers["x-none"]'}`,
      `{name: span.name, expression: '"my " + request.path'}`,
    ];
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `${ALWAYS}, attributes: {add: [${add.join(", ")}]}`,
    });
    await call(`${url}/a`, { headers: { "x-team": "blue" } });
    const got = await spans();
    const { name, attributes } = only(got, ({ kind }) => kind === SERVER);
    assert.equal(name, "my /a");
    assert.deepEqual(
      ["team", "sizes", "whole", "http.method", "http.request.method", "missing", "span.name"].map(
        (each) => attributes[each],
      ),
      ["blue", [200, 2.5], { a: { b: true } }, "replaced", "GET", undefined, undefined],
    );
    assert.equal(only(got, ({ kind }) => kind === CLIENT).attributes["team"], undefined);
  },
);

prove(
  `${FIELD}.attributes.remove[]`,
  "attributes are removed under both of their names, whichever is given",
  async (context) => {
    const { port } = await startEcho(context);
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `${ALWAYS}, attributes: {remove: [src.addr, http.request.method, url.scheme]}`,
    });
    await call(url);
    const { attributes } = only(await spans(), ({ kind }) => kind === SERVER);
    for (const name of ["src.addr", "client.address", "http.method", "http.request.method", "url.scheme"])
      assert.equal(attributes[name], undefined, name);
    assert.equal(attributes["http.status"], 200);
  },
);

prove(
  [`${FIELD}.resources[].name`, `${FIELD}.resources[].expression`],
  "attributes of the gateway itself are added to the usual ones and beat them",
  async (context) => {
    const { port } = await startEcho(context);
    const resources = [
      `{name: deployment.environment.name, expression: '"test"'}`,
      `{name: service.name, expression: 'env.gateway + "." + env.namespace'}`,
      `{name: host.name, expression: env.podName}`,
    ];
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `${ALWAYS}, resources: [${resources.join(", ")}]`,
    });
    await call(url);
    for (const { resource } of await spans()) {
      assert.equal(resource["deployment.environment.name"], "test");
      assert.equal(resource["service.name"], "gw.default");
      assert.equal(resource["host.name"], hostname());
    }
  },
);

prove(
  `${FIELD}.randomSampling`,
  "a share of the requests without a trace is traced, as the expression says of each",
  async (context) => {
    const { port, seen } = await startEcho(context);
    const draws = [0.2, 0.3, 0.3, 0.2];
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `randomSampling: 'request.path == "/all" ? 1.0 : request.path == "/none" ? 0.0 : 0.25'`,
      random: () => draws.shift() ?? assert.fail("one draw too many"),
    });
    for (const path of ["/all", "/none", "/a", "/b", "/c", "/d"]) await call(url + path);
    assert.deepEqual(paths(await spans()), ["/all", "/a", "/d"]);
    assert.deepEqual(
      seen.filter(({ headers }) => headers["traceparent"] !== undefined).map(({ url: target }) => target),
      ["/all", "/a", "/d"],
    );
  },
);

test("without randomSampling only requests with a trace are traced, and without clientSampling all of them", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const { url, spans } = await startTraced(context, { port, tracing: "resources: []" });
  await call(`${url}/none`);
  await call(`${url}/mine`, { headers: { traceparent: TRACEPARENT } });
  assert.deepEqual(paths(await spans()), ["/mine"]);
});

prove(
  `${FIELD}.clientSampling`,
  "a share of the requests with a trace is traced, and replicas agree about which",
  async (context) => {
    const { port, seen } = await startEcho(context);
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `${ALWAYS}, clientSampling: "0.5"`,
      random: () => assert.fail("the trace id is the draw"),
    });
    const low = `00-0af7651916cd43dd84${"7f".repeat(7)}-b7ad6b7169203331-01`;
    const high = `00-0af7651916cd43dd84${"80".repeat(7)}-b7ad6b7169203331-01`;
    for (const traceparent of [low, high, low]) await call(`${url}/${traceparent}`, { headers: { traceparent } });
    assert.deepEqual(paths(await spans()), [`/${low}`, `/${low}`]);
    assert.notEqual(seen[0]?.headers["traceparent"], low);
    assert.equal(seen[1]?.headers["traceparent"], high);
  },
);

test("a sampling expression may read the body, which reaches the upstream whole; one that fails samples nothing", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const { url, spans } = await startTraced(context, {
    port,
    tracing: `randomSampling: 'json(request.body).trace', clientSampling: 'request.headers["x-none"]'`,
  });
  const bodies = ['{"trace": true}', '{"trace": 0}', '{"trace": "yes"}', "{}", ""];
  for (const [at, body] of bodies.entries()) await call(`${url}/${at}`, { method: "POST", body });
  await call(`${url}/client`, { headers: { traceparent: TRACEPARENT } });
  assert.deepEqual(paths(await spans()), ["/0"]);
  assert.deepEqual(
    seen.map(({ body }) => body),
    [...bodies, ""],
  );
});

prove(
  `${FIELD}.filter`,
  "what is sampled is sent only when the filter says so at the end, with all spans of its request",
  async (context) => {
    const { port } = await startEcho(context);
    const { url, spans } = await startTraced(context, {
      port,
      tracing: `${ALWAYS}, filter: 'response.code >= 500 || request.headers["x-keep"] == "1"'`,
    });
    for (const path of ["/status/200", "/status/503", "/status/404"]) await call(url + path);
    await call(`${url}/kept`, { headers: { "x-keep": "1" } });
    const got = await spans();
    assert.deepEqual(paths(got), ["/status/503", "/kept"]);
    assert.equal(got.length, 4);
    const failed = only(got, ({ kind, attributes }) => kind === SERVER && attributes["http.path"] === "/status/503");
    assert.deepEqual([failed.status, failed.message], [ERROR, ""]);
  },
);

test("a policy for the port wins over the one for the Gateway, as a whole", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const own = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: own}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw, port: 8080}]
  frontend:
    tracing:
      backendRef: {group: gwproxy.dev, kind: GwBackend, name: collector}
      clientSampling: "false"
`;
  const { url, spans } = await startTraced(context, { port, more: [own, staticBackend("unused", port)] });
  await call(url);
  await call(url, { headers: { traceparent: TRACEPARENT } });
  assert.deepEqual(await spans(), []);
});

test("what is evaluated before a request, or before it has a route, may not read more", async (t) => {
  const context = contextOf(t);
  const place = 'url: "http://127.0.0.1:4317"';
  const wrong = [
    ["resources", `resources: [{name: a, expression: request.path}]`],
    ["randomSampling", "randomSampling: 'proxy.route.name == \"a\"'"],
    ["clientSampling", "clientSampling: 'response.code == 200'"],
  ] as const;
  const policies = wrong.map(([name, says]) =>
    gatewayPolicy(name.toLowerCase(), `  frontend: {tracing: {${place}, ${says}}}`),
  );
  const gateway = await startGateway(context, documents(GATEWAY, ...policies));
  const places = gateway.problems().map(({ path }) => path);
  assert.deepEqual(places.toSorted(), [
    "spec.frontend.tracing.clientSampling",
    "spec.frontend.tracing.randomSampling",
    "spec.frontend.tracing.resources[0].expression",
  ]);
});

test("attributes and the filter may read both bodies", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const add = [
    "{name: asked, expression: 'json(request.body).ask'}",
    "{name: heard, expression: 'json(response.body).method'}",
  ];
  const { url, spans } = await startTraced(context, {
    port,
    tracing: `${ALWAYS}, filter: 'size(response.body) > 0', attributes: {add: [${add.join(", ")}]}`,
  });
  await call(url, { method: "POST", body: '{"ask": 7}' });
  const { attributes } = only(await spans(), ({ kind }) => kind === SERVER);
  assert.deepEqual([attributes["asked"], attributes["heard"]], [7, "POST"]);
});

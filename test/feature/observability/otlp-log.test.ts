/** frontend.accessLog.otlp: what a real OpenTelemetry collector hears of requests. */
import assert from "node:assert/strict";
import { createServer, connect } from "node:net";
import { once } from "node:events";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayOf,
  gatewayPolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startCollector, type CollectedLog, type Collector } from "../../testbed/collector.ts";

const LOG = "GwPolicy spec.frontend.accessLog";
const OTLP = `${LOG}.otlp`;

/** A gateway with a route to an echo. @param otlp YAML flow @param more of accessLog, YAML flow members */
async function logged(
  context: ProofContext,
  otlp: string,
  { more = "", objects = [] }: { readonly more?: string; readonly objects?: readonly string[] } = {},
): Promise<TestGateway> {
  const { port } = await startEcho(context);
  const policy = gatewayPolicy("log", `  frontend: {accessLog: {otlp: ${otlp}${more}}}`);
  const gateway = await startWeb(context, port, policy, ...objects);
  assert.deepEqual(gateway.problems(), []);
  return gateway;
}

/** Paths of the requests that the collector heard of. */
function paths({ logs }: Collector): readonly unknown[] {
  return logs.map(({ attributes }) => attributes["http.path"]);
}

/** Asks for a path and returns its record. */
async function recordOf(gateway: TestGateway, collector: Collector, path = "/a"): Promise<CollectedLog> {
  assert.equal((await call(gateway.url() + path)).status, 200);
  await collector.until(() => paths(collector).includes(path));
  const found = collector.logs.filter(({ attributes }) => attributes["http.path"] === path);
  assert.equal(found.length, 1);
  return found[0] as CollectedLog; // just counted
}

const BACKEND = "{group: gwproxy.dev, kind: GwBackend, name: collector}";

prove(
  [`${OTLP}.backendRef.group`, `${OTLP}.backendRef.kind`, `${OTLP}.backendRef.name`],
  "a collector that is a GwBackend hears of each request over gRPC, in the names and types of the fields",
  async (context) => {
    const collector = await startCollector(context);
    const objects = [staticBackend("collector", collector.grpcPort)];
    const gateway = await logged(context, `{backendRef: ${BACKEND}}`, { objects });
    const before = BigInt(Date.now()) * 1_000_000n;
    const { resource, scope, severity, severityText, body, time, attributes } = await recordOf(
      gateway,
      collector,
      "/a",
    );
    assert.deepEqual(resource["service.name"], "gwproxy");
    assert.deepEqual([scope, severity, severityText, body], ["gwproxy.access", 9, "INFO", "request"]);
    assert.ok(time >= before - 1_000_000n && time <= BigInt(Date.now() + 1) * 1_000_000n, String(time));
    assert.equal(attributes["gateway"], "default/gw");
    assert.equal(attributes["route"], "default/web");
    assert.equal(attributes["http.method"], "GET");
    assert.equal(attributes["http.status"], 200);
    assert.match(String(attributes["duration"]), /^\d+ms$/);
    assert.equal(attributes["error"], undefined);
  },
);

prove(`${OTLP}.backendRef.namespace`, "the GwBackend may be in another namespace", async (context) => {
  const collector = await startCollector(context);
  const backend = staticBackend("collector", collector.grpcPort);
  const elsewhere = backend.replace("{name: collector}", "{name: collector, namespace: telemetry}");
  const otlp = "{backendRef: {group: gwproxy.dev, kind: GwBackend, name: collector, namespace: telemetry}}";
  await recordOf(await logged(context, otlp, { objects: [elsewhere] }), collector);
});

prove(`${OTLP}.backendRef.port`, "records go to a ready endpoint of a Service", async (context) => {
  const collector = await startCollector(context);
  const service = `
apiVersion: v1
kind: Service
metadata: {name: collector}
spec: {ports: [{name: grpc, port: 4317}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: collector-1, labels: {kubernetes.io/service-name: collector}}
addressType: IPv4
ports: [{name: grpc, port: ${collector.grpcPort}}]
endpoints: [{addresses: [127.0.0.1]}]
`;
  const otlp = "{backendRef: {name: collector, port: 4317}}";
  await recordOf(await logged(context, otlp, { objects: [service] }), collector);
});

prove(`${OTLP}.url`, "a collector may be named by a URL, and is asked over gRPC", async (context) => {
  const collector = await startCollector(context);
  await recordOf(await logged(context, `{url: "http://127.0.0.1:${collector.grpcPort}"}`), collector);
});

prove(`${OTLP}.protocol`, "a collector may be asked over HTTP, at the usual path", async (context) => {
  const collector = await startCollector(context);
  const { attributes } = await recordOf(
    await logged(context, `{url: "http://127.0.0.1:${collector.httpPort}", protocol: HTTP}`),
    collector,
  );
  assert.equal(attributes["http.status"], 200);
});

prove(`${OTLP}.path`, "over HTTP the path may be another", async (context) => {
  const collector = await startCollector(context, { paths: { logs: "/tenants/a/logs" } });
  const objects = [staticBackend("collector", collector.httpPort)];
  const otlp = `{backendRef: ${BACKEND}, protocol: HTTP, path: /tenants/a/logs}`;
  await recordOf(await logged(context, otlp, { objects }), collector);
});

prove([`${OTLP}.url`, `${OTLP}.protocol`], "the path of the URL is that of the collector", async (context) => {
  const collector = await startCollector(context, { paths: { logs: "/tenants/b/logs" } });
  const otlp = `{url: "http://127.0.0.1:${collector.httpPort}/tenants/b/logs", protocol: HTTP}`;
  await recordOf(await logged(context, otlp), collector);
});

prove(`${OTLP}.filter`, "a collector hears only of what its own filter lets through", async (context) => {
  const collector = await startCollector(context);
  const gateway = await logged(
    context,
    `{url: "http://127.0.0.1:${collector.grpcPort}", filter: 'request.path == "/kept"'}`,
    { more: `, filter: 'request.path == "/dropped"'` },
  );
  assert.equal((await call(`${gateway.url()}/dropped`)).status, 200);
  await recordOf(gateway, collector, "/kept");
  assert.deepEqual(paths(collector), ["/kept"]);
});

prove([`${LOG}.filter`], "without a filter of its own a collector hears of what is logged", async (context) => {
  const collector = await startCollector(context);
  const gateway = await logged(context, `{url: "http://127.0.0.1:${collector.grpcPort}"}`, {
    more: `, filter: 'request.path == "/kept"'`,
  });
  assert.equal((await call(`${gateway.url()}/dropped`)).status, 200);
  await recordOf(gateway, collector, "/kept");
  assert.deepEqual(paths(collector), ["/kept"]);
});

prove(
  [`${OTLP}.attributes.remove[]`, `${OTLP}.attributes.add[].name`, `${OTLP}.attributes.add[].expression`],
  "a collector gets attributes of its own, in place of those of the lines",
  async (context) => {
    const collector = await startCollector(context);
    const typed = `{name: typed, expression: '{"list": [1, 2.5, true], "text": "a"}'}`;
    const gateway = await logged(
      context,
      `{url: "http://127.0.0.1:${collector.grpcPort}", attributes: {remove: [src.addr], ` +
        `add: [{name: team, expression: '"blue"'}, ${typed}, {name: absent, expression: 'request.headers["x-none"]'}]}}`,
      { more: `, attributes: {remove: [http.method], add: [{name: lines, expression: '"only"'}]}` },
    );
    const { attributes } = await recordOf(gateway, collector);
    assert.equal(attributes["src.addr"], undefined);
    assert.equal(attributes["team"], "blue");
    assert.deepEqual(attributes["typed"], { list: [1, 2.5, true], text: "a" });
    assert.equal("absent" in attributes, false);
    assert.equal(attributes["http.method"], "GET");
    assert.equal(attributes["lines"], undefined);
  },
);

prove(
  [`${LOG}.attributes.remove[]`, `${LOG}.attributes.add[].name`, `${LOG}.attributes.add[].expression`],
  "without attributes of its own a collector gets those of the lines, under our own names whatever the preset",
  async (context) => {
    const collector = await startCollector(context);
    const gateway = await logged(context, `{url: "http://127.0.0.1:${collector.grpcPort}"}`, {
      more: `, preset: Otel, attributes: {remove: [src.addr], add: [{name: team, expression: '"blue"'}]}`,
    });
    const { attributes } = await recordOf(gateway, collector);
    assert.equal(attributes["src.addr"], undefined);
    assert.equal(attributes["team"], "blue");
    assert.equal(attributes["http.status"], 200);
    assert.equal(attributes["http.response.status_code"], undefined);
  },
);

prove(
  [`${OTLP}.url`, "GwPolicy spec.frontend.tracing.url"],
  "a record names the trace and the span of its request, so that one leads to the other",
  async (context) => {
    const collector = await startCollector(context);
    const url = `"http://127.0.0.1:${collector.grpcPort}"`;
    const { port } = await startEcho(context);
    const policy = `  frontend: {accessLog: {otlp: {url: ${url}}}, tracing: {url: ${url}, randomSampling: "true"}}`;
    const gateway = await startWeb(context, port, gatewayPolicy("telemetry", policy));
    assert.equal((await call(gateway.url())).status, 200);
    await gateway.proxy.end();
    await collector.until(() => collector.logs.length > 0 && collector.spans.length > 0);
    const [record] = collector.logs;
    const server = collector.spans.find(({ kind }) => kind === 2);
    assert.deepEqual([record?.traceId, record?.spanId], [server?.traceId, server?.spanId]);
    const { attributes } = record as CollectedLog; // there is one
    assert.deepEqual([attributes["trace.id"], attributes["span.id"]], [server?.traceId, server?.spanId]);
  },
);

prove(`${OTLP}.url`, "a record names the trace that a client is in, sampled or not", async (context) => {
  const collector = await startCollector(context);
  const gateway = await logged(context, `{url: "http://127.0.0.1:${collector.grpcPort}"}`);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-00` };
  assert.equal((await call(`${gateway.url()}/a`, { headers })).status, 200);
  await collector.until(() => collector.logs.length > 0);
  assert.equal(collector.logs[0]?.traceId, traceId);
});

prove(`${OTLP}.url`, "a connection that is passed on as bytes makes a record when it ends", async (context) => {
  const collector = await startCollector(context);
  const server = createServer((socket) => void socket.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => void server.close());
  const { port } = server.address() as { port: number }; // of a TCP server
  const gateway = await startGateway(
    context,
    documents(
      gatewayOf(["{name: tcp, port: 8080, protocol: TCP}"]),
      staticBackend("bytes", port),
      `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: bytes}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: bytes}]}]
`,
      gatewayPolicy("log", `  frontend: {accessLog: {otlp: {url: "http://127.0.0.1:${collector.grpcPort}"}}}`),
    ),
  );
  const socket = connect(Number(new URL(gateway.url()).port), "127.0.0.1").resume();
  await once(socket, "close");
  await collector.until(() => collector.logs.length > 0);
  const [record] = collector.logs;
  assert.equal(record?.attributes["route"], "default/bytes");
  assert.equal(record?.attributes["protocol"], "tcp");
  assert.equal(record?.attributes["http.method"], undefined);
});

/** Collectors as they are: behind TLS, away, hanging, replaced. Requests never notice, and what is lost is counted. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import type { Metrics } from "../../../src/telemetry/metrics.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { startGrpcCollector, startHttpCollector, type Decide } from "../../support/servers/fake-collector.ts";
import { freePort } from "../../support/fixtures/free-ports.ts";
import {
  documents,
  GATEWAY,
  gatewayOf,
  gatewayPolicy,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { eventually, startGwproxy } from "../../support/gateway/process.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { tlsFiles } from "../../support/fixtures/tls-files.ts";
import { startCollector, type Collector } from "../../testbed/collector.ts";

const OTLP = "GwPolicy spec.frontend.accessLog.otlp";

const TRANSPORTS = [
  { protocol: "GRPC", portOf: ({ grpcPort }: Collector) => grpcPort, fake: startGrpcCollector },
  { protocol: "HTTP", portOf: ({ httpPort }: Collector) => httpPort, fake: startHttpCollector },
] as const;

function logPolicy(otlp: string): string {
  return gatewayPolicy("log", `  frontend: {accessLog: {otlp: ${otlp}}}`);
}

function byUrl(port: number, protocol = "GRPC"): string {
  return logPolicy(`{url: "http://127.0.0.1:${port}", protocol: ${protocol}}`);
}

/** A GwBackend \`collector\` with these policies, and the log that goes there. */
function byBackend(port: number, protocol: string, policies: string): string {
  const backend = `${staticBackend("collector", port).trimEnd()}\n  policies: ${policies}\n`;
  const otlp = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: collector}, protocol: ${protocol}}`;
  return documents(backend, logPolicy(otlp));
}

interface Logged extends TestGateway {
  readonly metrics: Metrics;
  manifests(log: string): string;
}

/** A gateway with two listeners and a route to an echo. @param log the policy and what it names */
async function logged(context: ProofContext, log: string): Promise<Logged> {
  const echo = await startEcho(context);
  const metrics = createMetrics("test");
  const gateway = gatewayOf(["{name: http, port: 8080, protocol: HTTP}", "{name: more, port: 8081, protocol: HTTP}"]);
  const manifests = (policy: string): string =>
    documents(gateway, staticBackend("web", echo.port), route("web", "web"), policy);
  const started = await startGateway(context, manifests(log), { telemetry: { metrics } });
  assert.deepEqual(started.problems(), []);
  return { ...started, metrics, manifests };
}

function lost({ metrics }: Logged): number {
  const [, count = "0"] = /gwproxy_otlp_dropped_total\{signal="logs"\} (\d+)/.exec(metrics.print("prometheus")) ?? [];
  return Number(count);
}

async function ask(gateway: TestGateway, path: string, port = 8080): Promise<void> {
  assert.equal((await call(gateway.url(port) + path)).status, 200);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

interface Place {
  /** undefined: whoever comes is sent away. */
  port: number | undefined;
}

/** A port that stays, whoever is behind it. */
function startDoor(context: ProofContext, place: Place): Promise<number> {
  return startSocket(context, (socket) => {
    if (place.port === undefined) {
      socket.destroy();
      return;
    }
    const inner = connect(place.port, "127.0.0.1");
    inner.on("error", () => socket.destroy());
    inner.on("close", () => socket.destroy());
    socket.on("close", () => inner.destroy());
    socket.pipe(inner).pipe(socket);
  });
}

function paths({ logs }: Collector): unknown[] {
  return logs.map(({ attributes }) => attributes["http.path"]).sort();
}

for (const { protocol, portOf, fake } of TRANSPORTS) {
  prove(
    [`${OTLP}.backendRef.name`, "GwBackend spec.policies.tls.caCertificateRefs[].name"],
    `over ${protocol} a collector is asked with the TLS of its backend, which it has to prove itself to`,
    async (context) => {
      const files = tlsFiles(context);
      const collector = await startCollector(context, { tls: files });
      const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": readFileSync(files.ca, "utf8") });
      const trusting = "{tls: {sni: localhost, caCertificateRefs: [{name: trusted}]}}";
      const gateway = await logged(context, documents(trusted, byBackend(portOf(collector), protocol, trusting)));
      await ask(gateway, "/trusted");
      await collector.until(() => collector.logs.length > 0);
      assert.deepEqual(paths(collector), ["/trusted"]);
    },
  );

  test(`over ${protocol} the credential of its backend is shown to a collector, and the call is measured`, async (t) => {
    const context = contextOf(t);
    const collector = await fake(t);
    const gateway = await logged(context, byBackend(collector.port, protocol, "{auth: {key: for-collectors}}"));
    await ask(gateway, "/");
    await collector.asked(1);
    assert.equal(collector.headers[0]?.["authorization"], "Bearer for-collectors");
    assert.equal(collector.headers[0]?.["traceparent"], undefined);
    const measured = /upstream_call_duration_seconds_count\{kind="Policy",subtype="Otlp"\} 1\n/;
    await eventually(async () => assert.match(gateway.metrics.print("prometheus"), measured));
  });

  test(`over ${protocol} a collector that hangs costs records and no request`, async (t) => {
    const hanging: Decide = () => "hang";
    const collector = await fake(t, hanging);
    const gateway = await logged(contextOf(t), byUrl(collector.port, protocol));
    const all = 2600;
    for (let sent = 0; sent < all; sent += 50) await Promise.all(Array.from({ length: 50 }, () => ask(gateway, "/")));
    await collector.asked(4);
    assert.ok(lost(gateway) >= all - 2048, `${lost(gateway)} lost`);
  });

  test(`over ${protocol} records wait for a collector that is away`, async (t) => {
    const context = contextOf(t);
    const first = await startCollector(context);
    const place: Place = { port: portOf(first) };
    const gateway = await logged(context, byUrl(await startDoor(context, place), protocol));
    await ask(gateway, "/before");
    await first.until(() => first.logs.length > 0);
    place.port = undefined;
    await first.stop();
    await ask(gateway, "/between");
    const second = await startCollector(context);
    place.port = portOf(second);
    await ask(gateway, "/after");
    await second.until(() => second.logs.length === 2);
    assert.deepEqual(paths(second), ["/after", "/between"]);
    assert.equal(lost(gateway), 0);
  });
}

test("the Binds of a Gateway share an exporter", async (t) => {
  const collector = await startGrpcCollector(t);
  const gateway = await logged(contextOf(t), byUrl(collector.port));
  // On a machine that is busy the two may not be together the first time.
  for (let round = 1; collector.seen.at(-1) !== 2; round++) {
    await Promise.all([ask(gateway, "/", 8080), ask(gateway, "/", 8081)]);
    while (sum(collector.seen) < 2 * round) await collector.asked(collector.seen.length + 1);
  }
});

test("a changed policy sends to the new collector, and to the old one what it still has for it", async (t) => {
  const context = contextOf(t);
  const [one, two] = [await startCollector(context), await startCollector(context)];
  const gateway = await logged(context, byUrl(one.grpcPort));
  await ask(gateway, "/one");
  await gateway.change(gateway.manifests(byUrl(two.grpcPort)));
  await ask(gateway, "/two");
  await one.until(() => one.logs.length > 0);
  await two.until(() => two.logs.length > 0);
  assert.deepEqual([paths(one), paths(two)], [["/one"], ["/two"]]);
});

test("a collector that cannot be resolved is named in the problems of its policy, and requests pass", async (t) => {
  const echo = await startEcho(contextOf(t));
  const missing = logPolicy("{backendRef: {group: gwproxy.dev, kind: GwBackend, name: missing}}");
  const manifests = documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), missing);
  const metrics = createMetrics("test");
  const started = await startGateway(contextOf(t), manifests, { telemetry: { metrics } });
  const gateway: Logged = { ...started, metrics, manifests: () => manifests };
  await ask(gateway, "/");
  await gateway.proxy.end();
  assert.equal(lost(gateway), 1);
});

interface Scene {
  readonly process: ReturnType<typeof startGwproxy>;
  readonly url: string;
}

/** A process of its own that logs to a collector at the port. */
async function startProcess(context: ProofContext, collectorPort: number, workers: string): Promise<Scene> {
  const echo = await startEcho(context);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-otlp-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  const manifests = documents(gateway, route("web", "web"), staticBackend("web", echo.port), byUrl(collectorPort));
  writeFileSync(join(folder, "all.yaml"), manifests);
  const servers = ["--admin-address", "--readiness-address", "--metrics-address"].flatMap((name) => [
    name,
    "127.0.0.1:0",
  ]);
  const process = startGwproxy(context, ["up", "-f", folder, "--bind-address", "127.0.0.1", ...servers], {
    WORKERS: workers,
    OTEL_SERVICE_NAME: "edge",
    POD_NAME: "gw-1",
    POD_NAMESPACE: "shop",
    NODE_NAME: "node-a",
  });
  await process.printed(`listening on 127.0.0.1:${port} `);
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => assert.equal((await call(`${url}/first`)).status, 200));
  return { process, url };
}

for (const workers of ["1", "2"]) {
  test(`the end of the process loses no record (${workers} workers)`, async (t) => {
    const context = contextOf(t);
    const collector = await startCollector(context);
    const { process, url } = await startProcess(context, collector.grpcPort, workers);
    const wanted = Array.from({ length: 200 }, (_, at) => `/${at}`);
    await Promise.all(wanted.map(async (path) => assert.equal((await call(url + path)).status, 200)));
    await process.kill("SIGTERM");
    assert.equal(await process.exited, 0);
    await collector.stop();
    assert.deepEqual(new Set(paths(collector).filter((path) => path !== "/first")), new Set(wanted));
    const [resource] = collector.logs.map((record) => record.resource);
    assert.match(String(resource?.["service.version"]), /^\d+\.\d+\.\d+/);
    assert.deepEqual(
      { ...resource, "service.version": "" },
      {
        "service.name": "edge",
        "service.version": "",
        "k8s.pod.name": "gw-1",
        "k8s.namespace.name": "shop",
        "k8s.node.name": "node-a",
      },
    );
  });
}

test("a collector that hangs does not keep the process from its end", async (t) => {
  const collector = await startGrpcCollector(t, () => "hang");
  const { process } = await startProcess(contextOf(t), collector.port, "1");
  await process.kill("SIGTERM");
  assert.equal(await process.exited, 0);
  assert.match(process.output(), /telemetry was lost/);
  assert.equal(collector.seen.length, 1);
});

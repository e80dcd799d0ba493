/**
 * Traffic that asks for the admin, metrics and readiness listeners of its own gateway: through every kind of backend and way out,
 * by every name, nothing of it arrives there.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  ExtAuthChoiceSchema,
  ExtAuthGrpcSchema,
  ExtAuthHttpSchema,
  MirrorSchema,
  Phase,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { OwnListeners } from "../../../src/lib/network/own-listeners.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import {
  listener,
  policy,
  prefix,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, gatewayOf, route as manifestRoute } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { startGwproxy } from "../../support/gateway/process.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { startStrictUpstream } from "../../support/servers/strict-upstream.ts";
import { aiBackend, dynamicBackend, KEY, POST, UPGRADE, WAYS } from "./itself.ts";

/** What attackers call this machine; the second group only where something listens on every address. */
const OWN_NAMES = [
  "127.0.0.1",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "a.localhost",
  "0.0.0.0",
  "[::]",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::FFFF:7f00:1]",
  "[0:0:0:0:0:ffff:7f00:0001]",
  "[::ffff:0.0.0.0]",
];
const INTERFACE_NAMES = [
  ...Object.values(networkInterfaces()).flatMap((all = []) =>
    all.map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address)),
  ),
  "127.8.8.8",
  "[::ffff:127.8.8.8]",
];

const OWN_DETAIL = /^UpstreamFailure .*an admin, metrics or readiness listener of our own$/;

interface OwnServers {
  readonly listeners: OwnListeners;
  /** Of a server on 127.0.0.1 and of one on every address. */
  readonly ports: { readonly loopback: number; readonly every: number };
  /** What they were asked. */
  readonly asked: string[];
}

async function startOwnServers(t: TestContext): Promise<OwnServers> {
  const asked: string[] = [];
  const listeners = new OwnListeners();
  const open = async (host: string | undefined): Promise<number> => {
    const server = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.end("own");
    });
    server.on("connection", () => asked.push("connection"));
    await new Promise<void>((resolve) => server.listen({ port: 0, ...(host === undefined ? {} : { host }) }, resolve));
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    const bound = server.address() as AddressInfo;
    listeners.add(bound);
    return bound.port;
  };
  return { listeners, ports: { loopback: await open("127.0.0.1"), every: await open(undefined) }, asked };
}

const get = (authority: string): string =>
  `GET /config_dump HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`;

test("dynamicForwardProxy does not lead to listeners of the gateway itself, by any name", async (t) => {
  const { listeners, ports, asked } = await startOwnServers(t);
  const log = keepLines(t);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), dynamicBackend()], {
    ownListeners: listeners,
    telemetry: { metrics: createMetrics("test"), accessLog: log.accessLog },
  });
  t.after(() => plane.proxy.close());
  const places = [
    ...OWN_NAMES.map((name) => `${name}:${ports.loopback}`),
    ...[...OWN_NAMES, ...INTERFACE_NAMES].map((name) => `${name}:${ports.every}`),
  ];
  for (const authority of places) {
    const answer = await rawClient(plane.port, get(authority)).closed();
    assert.match(answer, /^HTTP\/1\.1 503 [^]*\r\n\r\nupstream call failed$/, authority);
    const { reason, error } = await log.nextFields();
    // Nothing listens at the IPv6 loopback address of the first server.
    if (authority !== `[::1]:${ports.loopback}`)
      assert.match(`${String(reason)} ${String(error)}`, OWN_DETAIL, authority);
  }
  assert.deepEqual(asked, []);
  // Other places of this machine are nobody's own.
  const upstream = await startStrictUpstream(t);
  assert.match(await rawClient(plane.port, get(`localhost:${upstream.port}`)).closed(), /answer 1 to/);
});

/** The backend `b` that leads to the port of an own listener. */
const OWN_BACKENDS: Readonly<Record<string, (port: number) => Resource[]>> = {
  ...WAYS,
  "a model": (port) => [aiBackend(port)],
  "a static backend over TLS": (port) => [staticBackend("b", port, { tls: {} })],
};

for (const [name, backend] of Object.entries(OWN_BACKENDS)) {
  test(`${name} does not lead to a listener of the gateway itself`, async (t) => {
    const { listeners, ports, asked } = await startOwnServers(t);
    const upstream = await startStrictUpstream(t);
    const mirror = create(MirrorSchema, { backend: KEY, numerator: 1, denominator: 1 });
    const mirrored = to("sound", {
      filters: [{ filter: { case: "mirror", value: mirror } }],
      matches: prefix("/copy"),
    });
    for (const port of Object.values(ports)) {
      const plane = await startDataPlane(
        [listener(), route("r", [to("b"), mirrored]), staticBackend("sound", upstream.port), ...backend(port)],
        { ownListeners: listeners },
      );
      t.after(() => plane.proxy.close());
      assert.match(await rawClient(plane.port, POST).closed(), /^HTTP\/1\.1 503 [^]*upstream call failed/);
      // A model takes neither.
      assert.match(await rawClient(plane.port, UPGRADE).closed(), /^HTTP\/1\.1 (?:50[23]|400) /);
      const session = await connectHttp2(plane.url);
      t.after(() => void session.destroy());
      const { status } = await sendHttp2(session, { ":path": "/x", ":authority": "a", ":method": "GET" });
      assert.ok(status >= 400, String(status));
      assert.match(await rawClient(plane.port, POST.replace("/x", "/copy")).closed(), /^HTTP\/1\.1 200 /);
    }
    assert.deepEqual(asked, []);
  });
}

test("a proxy is not asked to lead to a listener of the gateway itself", async (t) => {
  const { listeners, ports, asked } = await startOwnServers(t);
  const proxy = await startForwardProxy(t);
  for (const alwaysTunnels of [true, false]) {
    const tunnel = { alwaysTunnels, proxy: { place: { case: "backend", value: "backend/default/proxy" } } } as const;
    const plane = await startDataPlane(
      [listener(), route("r", [to("b")]), dynamicBackend({ tunnel }), staticBackend("proxy", proxy.port)],
      { ownListeners: listeners },
    );
    t.after(() => plane.proxy.close());
    for (const name of OWN_NAMES.filter((each) => !each.startsWith("[::1]")))
      assert.match(await rawClient(plane.port, get(`${name}:${ports.loopback}`)).closed(), /^HTTP\/1\.1 503 /, name);
  }
  assert.deepEqual(asked, []);
});

test("services of policies are not listeners of the gateway itself", async (t) => {
  const { listeners, ports, asked } = await startOwnServers(t);
  for (const protocol of [
    { case: "http", value: create(ExtAuthHttpSchema, {}) },
    { case: "grpc", value: create(ExtAuthGrpcSchema, {}) },
  ] as const) {
    for (const place of [
      { case: "backend", value: "backend/default/own" },
      { case: "origin", value: { host: "localhost", port: ports.loopback, tls: false, path: "/" } },
    ] as const) {
      const unit = {
        case: "extAuth",
        value: create(ExtAuthChoiceSchema, { branches: [{ extAuth: { service: { place }, protocol } }] }),
      } as const;
      const plane = await startDataPlane(
        [
          listener(),
          route("r", [to("b")]),
          staticBackend("own", ports.loopback),
          policy("auth", {
            phase: Phase.POST_ROUTING,
            targets: [{ target: { case: "route", value: "httproute/default/r" } }],
            units: [{ unit }],
          }),
        ],
        { ownListeners: listeners },
      );
      t.after(() => plane.proxy.close());
      assert.match(await rawClient(plane.port, POST).closed(), /^HTTP\/1\.1 403 /);
    }
  }
  assert.deepEqual(asked, []);
});

for (const workers of ["1", "2"]) {
  test(`the admin server of gwproxy up is out of reach of its traffic (${workers} workers)`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "gwproxy-test-"));
    t.after(() => rm(folder, { recursive: true }));
    const [port = 0, admin, metrics, readiness] = await freePorts(4);
    const anywhere = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: any}
spec: {dynamicForwardProxy: {}}
`;
    const gateway = gatewayOf([`{name: http, port: ${port}, protocol: HTTP}`]);
    await writeFile(join(folder, "all.yaml"), documents(gateway, manifestRoute("any", "any"), anywhere));
    const own = ["--admin-address", `127.0.0.1:${admin}`, "--metrics-address", `0.0.0.0:${metrics}`];
    const addresses = ["--readiness-address", `0.0.0.0:${readiness}`];
    await writeFile(join(folder, "token"), "secret\n");
    const more = [...addresses, "--admin-token-file", join(folder, "token"), "--workers", workers];
    const up = startGwproxy(t, ["up", "-f", folder, "--bind-address", "127.0.0.1", ...own, ...more]);
    await up.printed("listening on");
    for (const each of [admin, metrics, readiness])
      for (const name of ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"])
        for (const request of [
          get(`${name}:${each}`),
          get(`${name}:${each}`).replace("GET /config_dump", "POST /quitquitquit"),
        ])
          assert.match(await rawClient(port, request).closed(), /^HTTP\/1\.1 503 /, `${name}:${each}`);
    const dump = `http://127.0.0.1:${admin}/config_dump`;
    assert.equal((await call(dump)).status, 401);
    assert.equal((await call(dump, { headers: { authorization: "Bearer secret" } })).status, 200);
    assert.equal((await call(`http://127.0.0.1:${readiness}/healthz/ready`)).status, 200);
  });
}

/** Static backends of a cluster that lead to the data plane's own machine, by every spelling and every name. */
import assert from "node:assert/strict";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendSchema,
  DestinationScope,
  StaticBackendSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import { listener, rawClient, route, startDataPlane, to } from "../../support/gateway/data-plane.ts";
import { startDnsServer, useDnsServer } from "../../support/servers/dns-server.ts";
import { startStrictUpstream } from "../../support/servers/strict-upstream.ts";
import { KEY } from "./itself.ts";

const get = (authority: string): string =>
  `GET /config_dump HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`;

/** Hosts on the machine of a data plane or its link, as resolvers of several systems read them. */
const LOCAL_HOSTS = [
  "127.0.0.1",
  "127.8.8.8",
  "127.1",
  "127.0.1",
  "0177.0.0.1",
  "0x7f.0.0.1",
  "0x7f000001",
  "2130706433",
  "017700000001",
  "127.0.0.1.",
  "0",
  "0.0.0.0",
  "169.254.169.254",
  "169.254.1",
  "0xa9fea9fe",
  "2852039166",
  "0251.0376.0251.0376",
  "::1",
  "[::1]",
  "0:0:0:0:0:0:0:1",
  "::",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::FFFF:169.254.169.254",
  "::ffff:0.0.0.0",
  "fe80::1",
  "FE80::1%eth0",
  "[fe80::1%25eth0]",
  "febf::1",
  "localhost",
  "LOCALHOST.",
  "db.localhost",
];
const OTHER_HOSTS = [
  "10.0.0.1",
  "128.0.0.1",
  "169.253.0.1",
  "192.0.2.1",
  "2001:db8::1",
  "fec0::1",
  "::ffff:10.0.0.1",
  "web.default.svc.cluster.local",
  "localhost.example.com",
  "mylocalhost",
  "127.0.0.1.example.com",
  "127.example.com",
  "1.2.3.4.5",
  "256.1.1.1.1",
  "3232235777",
];
const SOCKETS = [
  "/spiffe-workload-api/socket",
  "//spiffe-workload-api/./spire-agent.sock",
  "/tmp/../spiffe-workload-api/a",
];

/** What the translator of a controller says of the GwBackend. */
function faultsOf(
  destinationScope: DestinationScope,
  fields: Readonly<Record<string, unknown>>,
  kind: "static" | "a2a" = "static",
): string[] {
  const translator = createTranslator({
    controllerName: "gwproxy.dev/gwproxy",
    implicitClass: "gwproxy",
    destinationScope,
  });
  const object = {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwBackend",
    metadata: { name: "b", namespace: "default" },
    spec: { [kind]: fields },
  };
  translator.apply([{ type: "set", object }]);
  return translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
}

test("a static backend or an agent of a cluster names neither loopback nor the link, unless that is allowed", () => {
  for (const host of LOCAL_HOSTS) {
    assert.match(
      faultsOf(DestinationScope.REMOTE, { host, port: 80 }).join(),
      /^spec\.static\.host: .*--allow-local-backends$/,
      host,
    );
    assert.match(
      faultsOf(DestinationScope.REMOTE, { host, port: 80 }, "a2a").join(),
      /^spec\.a2a\.host: .*--allow-local-backends$/,
      host,
    );
    assert.deepEqual(faultsOf(DestinationScope.LOCAL, { host, port: 80 }), [], host);
    assert.deepEqual(faultsOf(DestinationScope.UNSPECIFIED, { host, port: 80 }), [], host);
  }
  for (const host of OTHER_HOSTS) assert.deepEqual(faultsOf(DestinationScope.REMOTE, { host, port: 80 }), [], host);
  for (const unixPath of SOCKETS) {
    for (const destinationScope of [DestinationScope.REMOTE, DestinationScope.LOCAL])
      assert.match(
        faultsOf(destinationScope, { unixPath }).join(),
        /^spec\.static\.unixPath: .*name a socket of your own$/,
        unixPath,
      );
    assert.deepEqual(faultsOf(DestinationScope.UNSPECIFIED, { unixPath }), [], unixPath);
  }
  assert.deepEqual(faultsOf(DestinationScope.REMOTE, { unixPath: "/run/app.sock" }), []);
});

function clusterBackend(value: MessageInitShape<typeof StaticBackendSchema>): Resource {
  return resourceOf(
    "Backend",
    create(BackendSchema, { key: KEY, kind: { case: "static", value: create(StaticBackendSchema, value) } }),
  );
}

test("nor does a name of it lead there", async (t) => {
  const names = await startDnsServer(t);
  useDnsServer(t, names);
  names.zone.set("inside.test", { addresses: ["127.0.0.1"], ttl: 60 });
  names.zone.set("both.test", { addresses: ["192.0.2.1", "127.0.0.1"], ttl: 60 });
  names.zone.set("link.test", { addresses: ["169.254.169.254"], ttl: 60 });
  const upstream = await startStrictUpstream(t);
  const { port } = upstream;
  const plane = await startDataPlane([listener(), route("r", [to("b")])]);
  t.after(() => plane.proxy.close());
  const ask = (): Promise<string> => rawClient(plane.port, get("a")).closed();
  for (const host of ["inside.test", "both.test", "link.test", "localhost", "127.0.0.1", "::1", "0.0.0.0"]) {
    await plane.set(clusterBackend({ host, port, destinationScope: DestinationScope.REMOTE }));
    assert.match(await ask(), /^HTTP\/1\.1 503 [^]*\r\n\r\nupstream call failed$/, host);
  }
  assert.deepEqual(upstream.take().requests, []);
  for (const destinationScope of [DestinationScope.LOCAL, DestinationScope.UNSPECIFIED]) {
    await plane.set(clusterBackend({ host: "inside.test", port, destinationScope }));
    assert.match(await ask(), / to \/config_dump$/);
  }
  // A connection that was made where it is allowed is not used where it is not.
  await plane.set(clusterBackend({ host: "inside.test", port, destinationScope: DestinationScope.REMOTE }));
  assert.match(await ask(), /^HTTP\/1\.1 503 /);
});

test("the socket of the data plane's identity is no backend of a cluster, by any path", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "gwproxy-test-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "agent.sock");
  const asked: string[] = [];
  const agent = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("agent");
  });
  await new Promise<void>((resolve) => agent.listen(path, resolve));
  t.after(() => {
    agent.close();
    agent.closeAllConnections();
  });
  await symlink(path, join(folder, "link.sock"));
  const plane = await startDataPlane([listener(), route("r", [to("b")])], { spiffeEndpoint: `unix://${path}` });
  t.after(() => plane.proxy.close());
  for (const destinationScope of [DestinationScope.REMOTE, DestinationScope.LOCAL])
    for (const unixPath of [
      path,
      join(folder, "link.sock"),
      `/proc/self/root${path}`,
      path.replace("/agent", "/./agent"),
    ]) {
      await plane.set(clusterBackend({ unixPath, destinationScope }));
      assert.match(await rawClient(plane.port, get("a")).closed(), /^HTTP\/1\.1 503 /, unixPath);
    }
  assert.deepEqual(asked, []);
  await plane.set(clusterBackend({ unixPath: path }));
  assert.match(await rawClient(plane.port, get("a")).closed(), /agent/);
});

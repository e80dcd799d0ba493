/**
 * A data plane started from what its Deployment says: variables, files and token as a kubelet would hand them over, over
 * TLS by the authority that the controller made. And two replicas of the controller, of which one writes.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { controllerKubeconfig, startCluster, startController } from "../support/kubernetes/cluster.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { call } from "../support/clients/http.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../support/gateway/process.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import type { ApiServer } from "../testbed/api-server.ts";

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly resourceFieldRef?: { readonly resource: string };
    readonly secretKeyRef?: { readonly name: string; readonly key: string };
  };
}

interface PodSpec {
  readonly serviceAccountName: string;
  readonly containers: readonly { readonly args: readonly string[]; readonly env: readonly EnvVar[] }[];
}

/** The parts of the controller's dump that the test reads. */
interface ControllerDump {
  readonly ready: boolean;
  readonly leader: boolean;
  readonly objects: Readonly<Record<string, number>>;
  readonly gateways: Readonly<Record<string, { readonly routes: object }>>;
  readonly dataPlanes: readonly {
    readonly gateway: string;
    readonly sync: Readonly<Record<string, { readonly unanswered: number }>>;
  }[];
}

const POD: Readonly<Record<string, string>> = {
  "spec.nodeName": "node-1",
  "spec.serviceAccountName": "gw",
  "metadata.namespace": "default",
  "metadata.name": "gw-1",
  "status.podIP": "127.0.0.1",
  "limits.cpu": "1",
};

type Context = Pick<ProofContext, "after">;

async function get<T>(server: ApiServer, ...what: readonly string[]): Promise<T> {
  return JSON.parse(await server.kubectl(["get", ...what, "-o", "json"])) as T; // the kinds are those that are asked for
}

/** What a kubelet makes of the variables. */
async function environment(server: ApiServer, env: readonly EnvVar[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { name, value, valueFrom } of env) {
    const { fieldRef, resourceFieldRef, secretKeyRef } = valueFrom ?? {};
    if (secretKeyRef !== undefined) {
      const { data } = await get<{ data: Record<string, string> }>(server, "secret", secretKeyRef.name);
      found[name] = Buffer.from(data[secretKeyRef.key] ?? "", "base64").toString();
    } else found[name] = value ?? POD[fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? ""] ?? "";
  }
  return found;
}

async function startPod(context: Context, server: ApiServer, own: readonly number[]): Promise<GwproxyProcess> {
  const { spec } = await get<{ spec: { template: { spec: PodSpec } } }>(server, "deployment", "gw");
  const { serviceAccountName, containers } = spec.template.spec;
  const file = async (map: string, entry: string): Promise<string> => {
    const { data } = await get<{ data: Record<string, string> }>(server, "configmap", map);
    const path = join(server.directory, entry);
    await writeFile(path, data[entry] ?? "");
    return path;
  };
  const token = join(server.directory, "xds-token");
  await writeFile(token, await server.kubectl(["create", "token", serviceAccountName, "--audience", "gwproxy"]));
  const config = await file("gw", "config.yaml");
  const args = containers[0]?.args.map((arg) => (arg === "/config/config.yaml" ? config : arg)) ?? [];
  const env = await environment(server, containers[0]?.env ?? []);
  assert.equal(env["XDS_ROOT_CA"], "/etc/xds-tls/ca.crt");
  const [admin = "", metrics = "", readiness = ""] = own.map((port) => `127.0.0.1:${port}`);
  const addresses = { ADMIN_ADDR: admin, STATS_ADDR: metrics, READINESS_ADDR: readiness };
  const local = { ...addresses, XDS_ROOT_CA: await file("gw-xds-ca", "ca.crt") };
  const all = ["proxy", ...args, "--xds-token", token, "--bind-address", "127.0.0.1"];
  return startGwproxy(context, all, { ...env, ...local });
}

function manifests(port: number): object[] {
  const group = "gateway.networking.k8s.io/v1";
  const redirect = {
    type: "RequestRedirect",
    requestRedirect: { path: { type: "ReplaceFullPath", replaceFullPath: "/there" } },
  };
  const gateway = (name: string, at: number): object => ({
    apiVersion: group,
    kind: "Gateway",
    metadata: { name, namespace: "default" },
    spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: at, protocol: "HTTP" }] },
  });
  return [
    gateway("gw", port),
    {
      apiVersion: group,
      kind: "HTTPRoute",
      metadata: { name: "away", namespace: "default" },
      spec: { parentRefs: [{ name: "gw" }], rules: [{ filters: [redirect] }] },
    },
  ];
}

test("a data plane starts from what its Deployment says, and one replica of the controller writes", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const [xds = 0, port = 0, later = 0, measured = 0, admin = 0, ...own] = await freePorts(8);
  const kubeconfig = await controllerKubeconfig(server, { gatewayClass: { create: false } });
  const reach = ["--xds-service-host", "127.0.0.1", "--xds-service-port", String(xds)];
  // As in a cluster, where TLS and tokens are what is done unless something else is asked for.
  const more = ["--xds-address", `0.0.0.0:${xds}`, ...reach];
  const metrics = ["--metrics-address", `127.0.0.1:${measured}`];
  const token = join(server.directory, "admin-token");
  await writeFile(token, "admin-token\n");
  const looks = ["--admin-address", `127.0.0.1:${admin}`, "--admin-token-file", token];
  const first = await startController(context, server, xds, { kubeconfig, more: [...more, ...metrics, ...looks] });
  const apply = (object: object): Promise<string> => server.kubectl(["apply", "-f", "-"], JSON.stringify(object));
  for (const object of manifests(port)) await apply(object);
  const programmed = (name: string): Promise<string> =>
    server.kubectl(["wait", "--for=condition=Programmed", `gateway/${name}`, "--timeout=60s"]);

  await t.test("it serves, is ready, and is measured", async () => {
    const plane = await eventually(() => startPod(context, server, own));
    await programmed("gw");
    await plane.printed("for Gateway default/gw");
    const answer = await call(`http://127.0.0.1:${port}/here`);
    assert.equal(answer.status, 302);
    const [, metrics = 0, readiness = 0] = own;
    assert.equal((await call(`http://127.0.0.1:${readiness}/healthz/ready`)).status, 200);
    assert.equal((await call(`http://127.0.0.1:${metrics}/metrics`)).status, 200);
    assert.doesNotMatch(plane.output(), /[0-9a-f]{64}|PRIVATE KEY/);
  });

  await t.test("the admin server of the controller shows what it serves, and how far the data plane is", async () => {
    const url = `http://127.0.0.1:${admin}`;
    const headers = { authorization: "Bearer admin-token" };
    assert.equal((await call(`${url}/config_dump`)).status, 401);
    await eventually(async () => {
      const dump = await call(`${url}/config_dump`, { headers });
      const { ready, leader, objects, gateways, dataPlanes } = JSON.parse(dump.body) as ControllerDump;
      assert.deepEqual([ready, leader, objects["Gateway"], objects["HTTPRoute"]], [true, true, 1, 1]);
      assert.deepEqual(Object.keys(gateways["default/gw"]?.routes ?? {}), ["httproute/default/away"]);
      assert.deepEqual(
        dataPlanes.map(({ gateway, sync }) => [gateway, Object.values(sync).map(({ unanswered }) => unanswered)]),
        [["default/gw", Array.from({ length: 9 }, () => 0)]],
      );
      assert.doesNotMatch(dump.body, /PRIVATE KEY/);
    });
    assert.match((await call(`${url}/debug/tasks`, { headers })).body, /"kind": "stream"/);
    const profile = await call(`${url}/debug/pprof/heap?seconds=1`, { headers });
    assert.deepEqual([profile.status, profile.headers["content-type"]], [200, "application/octet-stream"]);
  });

  await t.test("it is not served without the authority, under another name, or in plaintext", async () => {
    const { data } = await get<{ data: Record<string, string> }>(server, "configmap", "gw-xds-ca");
    const ca = join(server.directory, "refused-ca.crt");
    await writeFile(ca, data["ca.crt"] ?? "");
    const token = join(server.directory, "xds-token");
    const flags = ["--admin-address", "--metrics-address", "--readiness-address"].flatMap((flag) => [
      flag,
      "127.0.0.1:0",
    ]);
    const refused: readonly (readonly [address: string, ca: string, cause: RegExp])[] = [
      [`https://127.0.0.1:${xds}`, "", /certificate/],
      [`https://localhost:${xds}`, ca, /Hostname\/IP does not match certificate|altnames/],
      [`http://127.0.0.1:${xds}`, "", /xds/],
    ];
    await Promise.all(
      refused.map(async ([address, trusted, cause]) => {
        const follow = ["--xds-address", address, "--xds-ca", trusted, "--xds-token", token, "--gateway", "default/gw"];
        const plane = startGwproxy(context, ["proxy", ...follow, "--bind-address", "127.0.0.1", ...flags]);
        await plane.printed(cause);
        assert.doesNotMatch(plane.output(), /for Gateway/);
        await plane.kill("SIGKILL");
      }),
    );
  });

  await t.test("what it refuses is counted, and told as an Event on its Gateway", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    context.after(() => void taken.close());
    await once(taken, "listening");
    const { port: second } = taken.address() as AddressInfo; // a TCP server has a port
    const listeners = [port, second].map((at) => ({ name: `l${at}`, port: at, protocol: "HTTP" }));
    const [gateway] = manifests(port);
    await apply({ ...gateway, spec: { gatewayClassName: "gwproxy", listeners } });
    const written = await eventually(async () => {
      const selector = "--field-selector=reason=GwProxyNack,involvedObject.name=gw,type=Warning";
      const { items } = await get<{ items: { message: string }[] }>(server, "events", selector);
      assert.ok(items.length > 0);
      return items;
    });
    assert.match(written[0]?.message ?? "", new RegExp(`^a data plane refused Bind ${second}/default/gw: `));
    const { body } = await call(`http://127.0.0.1:${measured}/metrics`);
    assert.match(body, /^gwproxy_controller_xds_rejects_total{gateway="default\/gw",type="Bind"} 1$/m);
    assert.match(body, /^gwproxy_controller_xds_connections{gateway="default\/gw"} 1$/m);
    assert.match(body, /^gwproxy_controller_leader 1$/m);
  });

  await t.test("a second replica only watches, until the first one is gone", async () => {
    const [other = 0] = await freePorts(1);
    const second = await startController(context, server, other, { kubeconfig, more: reach });
    assert.match(first.output(), /this replica writes now/);
    assert.doesNotMatch(second.output(), /this replica writes now/);
    await first.kill("SIGTERM");
    await second.printed("this replica writes now");
    const [gateway] = manifests(later);
    await apply({ ...gateway, metadata: { name: "later", namespace: "default" } });
    await eventually(() => server.kubectl(["get", "deployment", "later"]));
    await server.kubectl(["delete", "gatewayclass", "gwproxy"]);
    await eventually(() => server.kubectl(["get", "gatewayclass", "gwproxy"]));
    assert.doesNotMatch(first.output() + second.output(), /forbidden|PRIVATE KEY/);
  });
});

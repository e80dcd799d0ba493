/**
 * The two environments of the churn benchmark: a folder of files under `gwproxy up`, and an API server with controller
 * and data plane.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { defineGatewayKinds, defineOurKinds } from "../support/kubernetes/cluster.ts";
import { startApiServer } from "../testbed/api-server.ts";
import { pathOf, type ChurnForm, type Weighed } from "./churn.ts";
import { inspected } from "./inspector.ts";
import { backend, backendRef, gateway, route, service, slice } from "./objects.ts";
import { MOCK_PORT, OTHER_MOCK_PORT } from "./peers.ts";
import { start, type Running } from "./process.ts";

const [FILES_PORT, CLUSTER_PORT, XDS_PORT, HEALTH_PORT] = [18_120, 18_121, 18_122, 18_123] as const;
const [UP_INSPECTOR, CONTROLLER_INSPECTOR, PLANE_INSPECTOR] = [18_124, 18_125, 18_126] as const;
const START_LIMIT_MS = 60_000;
const GATEWAY_API = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
const BACKENDS_API = "/apis/gwproxy.dev/v1alpha1/namespaces/default/gwbackends";
const SLICES_API = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/** @param main main file of the bundle @param folder scratch folder of this run */
export async function startFiles(main: string, folder: string): Promise<ChurnForm> {
  const config = join(folder, "churn");
  mkdirSync(config);
  const write = (name: string, objects: readonly object[]): number => {
    const atMs = performance.now();
    const file = join(config, `${name}.yaml`);
    // Write and rename, as editors and deployment tools do, so that no reader sees half a file.
    writeFileSync(`${file}.new`, objects.map((object) => JSON.stringify(object)).join("\n---\n"));
    renameSync(`${file}.new`, file);
    return atMs;
  };
  write("gateway", [gateway(FILES_PORT)]);
  write("plain", [backend("plain", MOCK_PORT), route("plain", "/plain", backendRef("plain"))]);
  write("flapping", [service(), route("flapping", "/flapping", { kind: "Service", name: "flapping", port: 80 })]);
  const slices = [slice(0, "127.0.0.1", MOCK_PORT), slice(1, "127.0.0.1", OTHER_MOCK_PORT)];
  write("slices", slices);
  const args = [inspected(UP_INSPECTOR), main, "up", "-f", config, "--bind-address", "127.0.0.1", ...ownAddresses()];
  const running = await startOwn(args, FILES_PORT, "plain");
  return {
    name: "file",
    port: FILES_PORT,
    processes: [{ name: "up", running, inspectorPort: UP_INSPECTOR }],
    create: (number) => Promise.resolve(write(`churn-${number}`, [churnRoute(number, 0)])),
    change: (number, version) => Promise.resolve(write(`churn-${number}`, [churnRoute(number, version)])),
    remove: (number) => {
      const atMs = performance.now();
      rmSync(join(config, `churn-${number}.yaml`));
      return Promise.resolve(atMs);
    },
    flap: (turn) => {
      // Alternates between both endpoints and one of them, in turn.
      const missing = turn % 2 === 0 ? undefined : (turn >> 1) % 2;
      write(
        "slices",
        slices.filter((_, at) => at !== missing),
      );
      return Promise.resolve();
    },
    stop: () => running.stop(),
  };
}

/**
 * Writes go to the API server directly, and time counts from its response. There is no webhook, which would delay it.
 */
export async function startCluster(main: string): Promise<ChurnForm> {
  const server = await startApiServer();
  const processes: Weighed[] = [];
  const client = await createKubernetesClient(server.kubeconfig);
  const stop = async (): Promise<void> => {
    client.close();
    for (const { running } of processes.toReversed()) await running.stop();
    await server.stop();
  };
  try {
    await defineGatewayKinds(server);
    await defineOurKinds(server);
    // The controller keeps its lease in this namespace.
    await server.kubectl(["create", "namespace", "gwproxy-system"]);
    const follow = ["-k", server.kubeconfig, "--xds-address", `127.0.0.1:${XDS_PORT}`];
    const health = [
      "--health-address",
      `127.0.0.1:${HEALTH_PORT}`,
      "--metrics-address",
      "127.0.0.1:0",
      "--admin-address",
      "127.0.0.1:0",
      "--allow-local-backends",
    ];
    const controller = [inspected(CONTROLLER_INSPECTOR), main, "controller", ...follow, ...health];
    processes.push({
      name: "controller",
      running: await startOwn(controller, HEALTH_PORT, "readyz"),
      inspectorPort: CONTROLLER_INSPECTOR,
    });
    await server.kubectl(["apply", "-f", "-"], clusterManifests());
    const place = [
      "--xds-address",
      `127.0.0.1:${XDS_PORT}`,
      "--gateway",
      "default/bench",
      "--bind-address",
      "127.0.0.1",
    ];
    const plane = [inspected(PLANE_INSPECTOR), main, "proxy", ...place, ...ownAddresses()];
    processes.push({
      name: "data plane",
      running: await startOwn(plane, CLUSTER_PORT, "plain"),
      inspectorPort: PLANE_INSPECTOR,
    });
    return { name: "cluster", port: CLUSTER_PORT, processes, ...writesTo(client), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function writesTo(client: KubernetesClient): Pick<ChurnForm, "create" | "change" | "remove" | "flap"> {
  const patch = (path: string, operations: readonly object[]): Promise<unknown> =>
    client.request({ method: "PATCH", path, contentType: "application/json-patch+json", body: operations });
  return {
    async create(number) {
      await client.request({ method: "POST", path: GATEWAY_API, body: churnRoute(number, 0) });
      return performance.now();
    },
    async change(number, version) {
      const path = "/spec/rules/0/matches/0/path/value";
      await patch(`${GATEWAY_API}/churn-${number}`, [{ op: "replace", path, value: pathOf(number, version) }]);
      return performance.now();
    },
    async remove(number) {
      await client.request({ method: "DELETE", path: `${GATEWAY_API}/churn-${number}` });
      return performance.now();
    },
    async flap(turn) {
      // The API server rejects loopback addresses in an EndpointSlice, so the load goes to a GwBackend that moves.
      const port = turn % 2 === 0 ? MOCK_PORT : OTHER_MOCK_PORT;
      await patch(`${BACKENDS_API}/flapping`, [{ op: "replace", path: "/spec/static/port", value: port }]);
      const ready = { ready: turn % 2 === 0 };
      await patch(`${SLICES_API}/idle-0`, [{ op: "replace", path: "/endpoints/0/conditions", value: ready }]);
    },
  };
}

function clusterManifests(): string {
  const idle = { kind: "Service", name: "idle", port: 80 };
  return [
    gateway(CLUSTER_PORT),
    backend("plain", MOCK_PORT),
    backend("flapping", MOCK_PORT),
    { ...service(), metadata: { name: "idle", namespace: "default" } },
    slice(0, "192.0.2.1", 8080, "idle"),
    route("plain", "/plain", backendRef("plain")),
    route("flapping", "/flapping", backendRef("flapping")),
    route("idle", "/idle", idle),
  ]
    .map((object) => JSON.stringify(object))
    .join("\n---\n");
}

function ownAddresses(): string[] {
  return ["--admin-address", "--metrics-address", "--readiness-address"].flatMap((flag) => [flag, "127.0.0.1:0"]);
}

function startOwn(args: readonly string[], port: number, path: string): Promise<Running> {
  const command = { file: process.execPath, args: [...args, "--log-level", "warn"] };
  return start(command, new URL(`http://127.0.0.1:${port}/${path}`), START_LIMIT_MS);
}

function churnRoute(number: number, version: number): object {
  return route(`churn-${number}`, pathOf(number, version), backendRef("plain"));
}

/**
 * `make bench BENCH="--only scale"`: how the controller and a data plane of it behave with thousands of routes,
 * hundreds of Gateways and thousands of ListenerSets, against a real API server without nodes. Writes are counted by
 * the API server itself, in its metric `apiserver_request_total`.
 *
 * The routes exist before the controller starts, so its first start writes all statuses and its second one must write
 * none.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { defineGatewayKinds, defineOurKinds } from "../support/kubernetes/cluster.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";
import { backend, backendRef, gateway, listenerSet, route, service, slice } from "./objects.ts";
import { MOCK_PORT } from "./peers.ts";
import { Probe } from "./probe.ts";
import { start, type Running } from "./process.ts";
import { figure, percentile, printTable } from "./report.ts";

export interface Scaled {
  /** Title such as "5000 routes". */
  readonly title: string;
  readonly routes: number;
  /** Figures by their names in SCALE_FIGURES. */
  readonly figures: Readonly<Partial<Record<Figure, number>>>;
}

export const SCALE_FIGURES = {
  controllerStartMs: "controller start to ready, ms",
  controllerRestartMs: "the same, all statuses written",
  controllerMiB: "controller memory, resident, MiB",
  planeStartMs: "data plane start to first answer, ms",
  planeMiB: "data plane memory, resident, MiB",
  editMs: "an edit to live traffic, 99th percentile, ms",
  editCpuMs: "controller CPU for one edit, ms",
  writesPerRoute: "status writes for each route",
  restartWrites: "writes at a restart that changes nothing",
  deployedMs: "all Gateways deployed, ms",
  editWrites: "writes of deployed objects for an edit of one Gateway",
  churnWrites: "status writes while endpoints change 50 times a second",
} as const;
export type Figure = keyof typeof SCALE_FIGURES;

const [CLUSTER_PORT, XDS_PORT, HEALTH_PORT] = [18_131, 18_132, 18_133] as const;
const START_LIMIT_MS = 300_000;
const EDITS = 100;
/** Concurrent requests to the API server. */
const IN_FLIGHT = 32;
const GATEWAYS = 200;
const LISTENER_SETS = 2_500;
const ROUTES_OF_LISTENER_SET = 16;
const CHURN = { seconds: 10, perSecond: 50 } as const;
/** Time without a write after which the controller is taken to be finished. */
const QUIET_MS = 3_000;

/** The objects of a run. Its class and its Gateway have statuses too, which change more than once at a start. */
const ROUTES_AND_SETS = /resource="(?:httproutes|listenersets)"/;

const GATEWAY_API = "/apis/gateway.networking.k8s.io/v1/namespaces/default";
const SLICES_API = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/** @param main main file of the bundle @param sizes numbers of routes, each a run of its own */
export async function measureScale(main: string, sizes: readonly number[]): Promise<Scaled[]> {
  const scaled: Scaled[] = [];
  for (const routes of sizes) {
    const title = `${routes} routes`;
    scaled.push({ title, routes, figures: await inCluster(title, (cluster) => ofRoutes(main, cluster, routes)) });
  }
  const sets = `${LISTENER_SETS} ListenerSets`;
  const all = LISTENER_SETS * ROUTES_OF_LISTENER_SET;
  // The longest run is skipped unless a run of that many routes is requested.
  if (sizes.some((size) => size >= all))
    scaled.push({ title: sets, routes: all, figures: await inCluster(sets, (cluster) => ofSets(main, cluster)) });
  const gateways = `${GATEWAYS} Gateways`;
  scaled.push({
    title: gateways,
    routes: 0,
    figures: await inCluster(gateways, (cluster) => ofGateways(main, cluster)),
  });
  return scaled;
}

type Figures = Partial<Record<Figure, number>>;

class Cluster {
  readonly server: ApiServer;
  readonly client: KubernetesClient;
  readonly title: string;
  readonly running: Running[] = [];

  constructor(title: string, server: ApiServer, client: KubernetesClient) {
    this.title = title;
    this.server = server;
    this.client = client;
  }

  say(text: string): void {
    process.stderr.write(`  ${this.title}: ${text}\n`);
  }

  async create(path: string, objects: readonly object[]): Promise<void> {
    const left = objects.values();
    const work = async (): Promise<void> => {
      for (const body of left) await this.client.request({ method: "POST", path, body });
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  }

  /**
   * Returns the number of successful writes: of statuses, or of all other objects except leases and events.
   * @param resources matches the lines of the metric that count
   */
  async writes(of: "statuses" | "objects", resources: RegExp = /./): Promise<number> {
    const text = await this.server.kubectl(["get", "--raw", "/metrics"]);
    let sum = 0;
    for (const line of text.split("\n")) {
      if (!line.startsWith("apiserver_request_total{") || !/verb="(?:APPLY|PATCH|PUT|POST|DELETE)"/.test(line))
        continue;
      if (!resources.test(line)) continue;
      if (!/code="2\d\d"/.test(line) || /resource="(?:leases|events)"/.test(line)) continue;
      if (line.includes('subresource="status"') === (of === "statuses"))
        sum += Number(line.slice(line.lastIndexOf(" ")));
    }
    return sum;
  }

  /** Resolves when the API server has counted no write for QUIET_MS. @returns milliseconds until the last write */
  async quiet(): Promise<number> {
    const began = performance.now();
    let [last, at] = [-1, began];
    for (;;) {
      const now = (await this.writes("statuses")) + (await this.writes("objects"));
      if (now !== last) [last, at] = [now, performance.now()];
      else if (performance.now() - at > QUIET_MS) return at - began;
      await delay(200);
    }
  }

  async startController(main: string): Promise<Running> {
    const args = ["controller", "-k", this.server.kubeconfig, "--xds-address", `127.0.0.1:${XDS_PORT}`];
    const own = ["--metrics-address", "--admin-address"].flatMap((option) => [option, "127.0.0.1:0"]);
    const health = ["--health-address", `127.0.0.1:${HEALTH_PORT}`];
    return this.#start([main, ...args, ...health, ...own, "--allow-local-backends"], HEALTH_PORT, "/readyz");
  }

  async startPlane(main: string, path: string): Promise<Running> {
    const addresses = ["--admin-address", "--metrics-address", "--readiness-address"];
    const own = addresses.flatMap((option) => [option, "127.0.0.1:0"]);
    const place = ["--xds-address", `127.0.0.1:${XDS_PORT}`, "--gateway", "default/bench"];
    return this.#start([main, "proxy", ...place, "--bind-address", "127.0.0.1", ...own], CLUSTER_PORT, path);
  }

  async #start(args: readonly string[], port: number, path: string): Promise<Running> {
    const command = { file: process.execPath, args: [...args, "--log-level", "warn"] };
    const running = await start(command, new URL(`http://127.0.0.1:${port}${path}`), START_LIMIT_MS);
    this.running.push(running);
    return running;
  }
}

async function inCluster(title: string, work: (cluster: Cluster) => Promise<Figures>): Promise<Figures> {
  const server = await startApiServer();
  const client = await createKubernetesClient(server.kubeconfig);
  const cluster = new Cluster(title, server, client);
  try {
    await defineGatewayKinds(server);
    await defineOurKinds(server);
    // The controller keeps its lease in this namespace.
    await server.kubectl(["create", "namespace", "gwproxy-system"]);
    return await work(cluster);
  } finally {
    client.close();
    for (const running of cluster.running.toReversed()) await running.stop();
    await server.stop();
  }
}

async function ofRoutes(main: string, cluster: Cluster, routes: number): Promise<Figures> {
  const idle = { kind: "Service", name: "idle", port: 80 };
  const objects = [
    gateway(CLUSTER_PORT),
    backend("plain", MOCK_PORT),
    { ...service(), metadata: { name: "idle", namespace: "default" } },
    slice(0, "192.0.2.1", 8080, "idle"),
    route("idle", "/idle", idle),
  ];
  await cluster.server.kubectl(["apply", "-f", "-"], objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  cluster.say("routes are created");
  const all = Array.from({ length: routes }, (_, at) => route(`scale-${at}`, pathOf(at, 0), backendRef("plain")));
  await cluster.create(`${GATEWAY_API}/httproutes`, all);
  const figures = await ofStarts(main, cluster, routes, pathOf(routes - 1, 0));
  cluster.say("one edit after the other");
  Object.assign(figures, await ofEdits(cluster, routes));
  cluster.say("endpoints change");
  figures.churnWrites = await writesOfChurn(cluster);
  return figures;
}

async function ofSets(main: string, cluster: Cluster): Promise<Figures> {
  const objects = [gateway(CLUSTER_PORT, { namespaces: { from: "All" } }), backend("plain", MOCK_PORT)];
  await cluster.server.kubectl(["apply", "-f", "-"], objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  cluster.say("ListenerSets and routes are created");
  const sets = Array.from({ length: LISTENER_SETS }, (_, at) => listenerSet(`set-${at}`, CLUSTER_PORT, `s${at}.test`));
  await cluster.create(`${GATEWAY_API}/listenersets`, sets);
  const routes = sets.flatMap((_, set) =>
    Array.from({ length: ROUTES_OF_LISTENER_SET }, (__, at) =>
      route(`set-${set}-${at}`, `/${at}`, backendRef("plain"), { kind: "ListenerSet", name: `set-${set}` }),
    ),
  );
  routes.push(route("last", "/last", backendRef("plain")));
  await cluster.create(`${GATEWAY_API}/httproutes`, routes);
  return ofStarts(main, cluster, routes.length + sets.length, "/last");
}

/** Measures a first start of the controller, which writes statuses, the start of a data plane, and a second start. */
async function ofStarts(main: string, cluster: Cluster, objects: number, lastPath: string): Promise<Figures> {
  cluster.say("the controller starts");
  const before = await cluster.writes("statuses", ROUTES_AND_SETS);
  const first = await cluster.startController(main);
  await cluster.quiet();
  const writesPerRoute = ((await cluster.writes("statuses", ROUTES_AND_SETS)) - before) / objects;
  cluster.say("a data plane starts");
  const plane = await cluster.startPlane(main, lastPath);
  // The acknowledgements of the data plane change statuses once.
  await cluster.quiet();
  await first.stop();
  cluster.say("the controller starts again");
  const atRestart = (await cluster.writes("statuses")) + (await cluster.writes("objects"));
  const second = await cluster.startController(main);
  await cluster.quiet();
  const restartWrites = (await cluster.writes("statuses")) + (await cluster.writes("objects")) - atRestart;
  return {
    controllerStartMs: first.startMs,
    controllerRestartMs: second.startMs,
    controllerMiB: second.residentMiB(),
    planeStartMs: plane.startMs,
    planeMiB: plane.residentMiB(),
    writesPerRoute,
    restartWrites,
  };
}

async function ofEdits(cluster: Cluster, routes: number): Promise<Figures> {
  const controller = cluster.running.at(-1);
  if (controller === undefined) throw new TypeError("edits follow the start of a controller");
  const probe = new Probe(CLUSTER_PORT);
  const milliseconds: number[] = [];
  const began = cpuMs(controller.pid);
  try {
    for (let at = 0; at < EDITS; at += 1) {
      const number = (at * 37) % routes;
      const path = pathOf(number, at + 1);
      const value = [{ op: "replace", path: "/spec/rules/0/matches/0/path/value", value: path }];
      const contentType = "application/json-patch+json";
      await cluster.client.request({
        method: "PATCH",
        path: `${GATEWAY_API}/httproutes/scale-${number}`,
        contentType,
        body: value,
      });
      milliseconds.push(await probe.live({ path, status: 200, atMs: performance.now() }));
    }
  } finally {
    probe.close();
  }
  const editCpuMs = (cpuMs(controller.pid) - began) / EDITS;
  const editMs = percentile(milliseconds, 0.99);
  return { editCpuMs, ...(editMs === undefined ? {} : { editMs }) };
}

async function writesOfChurn(cluster: Cluster): Promise<number> {
  await cluster.quiet();
  const before = await cluster.writes("statuses");
  for (let turn = 0; turn < CHURN.seconds * CHURN.perSecond; turn += 1) {
    const body = [{ op: "replace", path: "/endpoints/0/conditions", value: { ready: turn % 2 === 0 } }];
    const contentType = "application/json-patch+json";
    await cluster.client.request({ method: "PATCH", path: `${SLICES_API}/idle-0`, contentType, body });
    await delay(1_000 / CHURN.perSecond);
  }
  await cluster.quiet();
  return (await cluster.writes("statuses")) - before;
}

async function ofGateways(main: string, cluster: Cluster): Promise<Figures> {
  const controller = await cluster.startController(main);
  cluster.say("Gateways are created");
  const names = Array.from({ length: GATEWAYS }, (_, at) => `edge-${at}`);
  const created = performance.now();
  await cluster.create(
    `${GATEWAY_API}/gateways`,
    names.map((name) => ({ ...gateway(80), metadata: { name, namespace: "default" } })),
  );
  const creating = performance.now() - created;
  const deployedMs = creating + (await cluster.quiet());
  const text = await cluster.server.kubectl(["get", "deployments", "-o", "name"]);
  const deployed = text.split("\n").filter((line) => line !== "").length;
  if (deployed !== GATEWAYS) throw new Error(`${deployed} of ${GATEWAYS} Gateways have a Deployment`);
  const before = await cluster.writes("objects");
  const listener = { op: "add", path: "/spec/listeners/-", value: { name: "more", port: 81, protocol: "HTTP" } };
  await cluster.client.request({
    method: "PATCH",
    path: `${GATEWAY_API}/gateways/edge-7`,
    contentType: "application/json-patch+json",
    body: [listener],
  });
  await cluster.quiet();
  // One of the writes is the edit itself.
  const editWrites = (await cluster.writes("objects")) - before - 1;
  return { deployedMs, editWrites, controllerMiB: controller.residentMiB() };
}

/** Returns the processor time of all threads of a process; one tick of the kernel is 10 ms. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function pathOf(routeNumber: number, version: number): string {
  return `/scale/${routeNumber}/${version}`;
}

export function scaleTable(scaled: readonly Scaled[]): string {
  const rows = Object.entries(SCALE_FIGURES).map(([name, title]) => [
    title,
    ...scaled.map(({ figures }) => figure(figures[name as Figure])),
  ]);
  return printTable(["scale", ...scaled.map(({ title }) => title)], rows);
}

/** What the controller makes of Gateways on a real API server: objects applied once, put back, taken away, and a status. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CHART_FLAGS, controllerKubeconfig, startCluster, startController } from "../support/kubernetes/cluster.ts";
import { renderChart } from "../support/kubernetes/chart.ts";
import { freePort } from "../support/fixtures/free-ports.ts";
import { eventually, type GwproxyProcess } from "../support/gateway/process.ts";
import type { ApiServer } from "../testbed/api-server.ts";

interface Stored {
  readonly metadata: {
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly labels: Readonly<Record<string, string>>;
    readonly ownerReferences: readonly { readonly kind: string; readonly uid: string }[];
    readonly managedFields: readonly { readonly manager: string; readonly operation: string }[];
  };
  readonly spec: {
    readonly ports: readonly { readonly name: string; readonly port: number }[];
    readonly loadBalancerIP?: string;
    readonly clusterIP: string;
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
  readonly data: Readonly<Record<string, string>>;
  readonly status: {
    readonly addresses?: readonly { readonly type: string; readonly value: string }[];
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  };
}

const CHILDREN = ["serviceaccount/gw", "configmap/gw", "secret/gw-session-key", "service/gw", "deployment/gw"];

const cleaning: (() => void | Promise<void>)[] = [];
let server: ApiServer;
let controller: GwproxyProcess;

before(async () => {
  const context = { after: (clean: () => void | Promise<void>) => void cleaning.unshift(clean) };
  server = await startCluster(context);
  const kubeconfig = await controllerKubeconfig(server);
  controller = await startController(context, server, await freePort(), { kubeconfig, more: CHART_FLAGS });
});

after(async () => {
  for (const clean of cleaning) await clean();
});

async function read(object: string): Promise<Stored> {
  return JSON.parse(await server.kubectl(["get", object, "-o", "json", "--show-managed-fields"])) as Stored;
}

function gateway(name: string, ports: readonly number[], more: object = {}): Promise<string> {
  const listeners = ports.map((port) => ({ name: `l${port}`, port, protocol: "HTTP" }));
  const object = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name, namespace: "default" },
    spec: { gatewayClassName: "gwproxy", listeners, ...more },
  };
  return server.kubectl(["apply", "-f", "-"], JSON.stringify(object));
}

async function says(name: string, wanted: readonly string[]): Promise<Stored> {
  return eventually(async () => {
    const stored = await read(`gateway/${name}`);
    const found = stored.status.conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    assert.deepEqual(found.sort(), [...wanted].sort());
    return stored;
  });
}

const SERVED = ["Accepted True Accepted", "Programmed True Programmed"];

/** Says in the place of the node, which this cluster does not have, that pods of a workload are ready. */
async function reportReady(workload: string, status: object = { replicas: 1, readyReplicas: 1 }): Promise<void> {
  const patch = ["--subresource=status", "--type=merge", "-p", JSON.stringify({ status })];
  await eventually(() => server.kubectl(["patch", workload, ...patch]));
}

test("a Gateway gets its objects, owned by it, and the address of its Service", async () => {
  await gateway("gw", [80]);
  const waiting = await says("gw", ["Accepted True Accepted", "Programmed False Pending"]);
  assert.equal(JSON.stringify(waiting.status).split("no data plane is connected").length - 1, 2, "it and its listener");
  await reportReady("deployment/gw");
  const { metadata, status } = await says("gw", SERVED);
  assert.doesNotMatch(JSON.stringify(status), /no data plane/);
  for (const child of CHILDREN) {
    const stored = await read(child);
    assert.deepEqual(
      stored.metadata.ownerReferences.map(({ kind, uid }) => [kind, uid]),
      [["Gateway", metadata.uid]],
      child,
    );
    assert.ok(
      stored.metadata.managedFields.some(
        ({ manager, operation }) => `${manager} ${operation}` === "gwproxy.dev/gwproxy Apply",
      ),
      child,
    );
  }
  const service = await read("service/gw");
  assert.deepEqual(status.addresses, [{ type: "IPAddress", value: service.spec.clusterIP }]);
  const key = Buffer.from((await read("secret/gw-session-key")).data["key"] ?? "", "base64").toString();
  assert.match(key, /^[0-9a-f]{64}$/);
});

interface Template {
  readonly metadata: { readonly labels: object };
  readonly spec: { readonly securityContext?: object; readonly containers: readonly { securityContext: object }[] };
}

interface Deployment {
  readonly spec: { readonly template: Template };
}

/** What the API server says to a Pod in a namespace that enforces the restricted Pod Security Standard; nothing: it may run. */
async function refusalOf(template: Template, name: string): Promise<string> {
  const pod = { apiVersion: "v1", kind: "Pod", ...template, metadata: { name, namespace: "restricted" } };
  return server.kubectl(["create", "--dry-run=server", "-f", "-"], JSON.stringify(pod)).then(
    () => "",
    (error: unknown) => String(error),
  );
}

/** Returns the pods of the chart: of the controller, of the webhook and of `helm test`. */
async function podsOfChart(): Promise<(readonly [name: string, template: Template])[]> {
  const objects = await renderChart();
  return objects.flatMap(({ kind, metadata, ...object }) => {
    if (kind === "Pod") return [[metadata.name, { metadata, ...object } as unknown as Template]]; // by its kind
    return kind === "Deployment" ? [[metadata.name, (object as unknown as Deployment).spec.template]] : []; // the same
  });
}

test("every pod, those of the chart too, may run where the restricted Pod Security Standard is enforced", async () => {
  await server.kubectl(["create", "namespace", "restricted"]);
  const enforced = "pod-security.kubernetes.io/enforce";
  await server.kubectl(["label", "namespace", "restricted", `${enforced}=restricted`, `${enforced}-version=latest`]);
  const plane = JSON.parse(await server.kubectl(["get", "deployment", "gw", "-o", "json"])) as Deployment; // by its kind
  const pods = [["gw", plane.spec.template] as const, ...(await podsOfChart())];
  assert.deepEqual(
    pods.map(([name]) => name),
    ["gw", "gwproxy", "gwproxy-webhook", "gwproxy-test-client"],
  );
  for (const [name, template] of pods) {
    assert.equal(await refusalOf(template, name), "");
    const without = JSON.stringify(template).replaceAll('"RuntimeDefault"', '"Unconfined"');
    const refusal = await refusalOf(JSON.parse(without) as Template, name); // the same
    assert.match(refusal, /violates PodSecurity "restricted:latest": seccompProfile/);
  }
});

test("a load balancer's address replaces those of the cluster", async () => {
  const ingress = { status: { loadBalancer: { ingress: [{ ip: "192.0.2.7" }] } } };
  const patch = ["--subresource=status", "--type=merge", "-p", JSON.stringify(ingress)];
  await server.kubectl(["patch", "service", "gw", ...patch]);
  await eventually(async () => {
    const { status } = await read("gateway/gw");
    assert.deepEqual(status.addresses, [{ type: "IPAddress", value: "192.0.2.7" }]);
  });
});

test("listeners that come and go change the Service and nothing else", async () => {
  const before = await Promise.all(CHILDREN.map(read));
  await gateway("gw", [80, 8080]);
  const ports = async (): Promise<string[]> => (await read("service/gw")).spec.ports.map(({ name }) => name);
  await eventually(async () => assert.deepEqual(await ports(), ["listener-80", "listener-8080"]));
  await gateway("gw", [8080]);
  await eventually(async () => assert.deepEqual(await ports(), ["listener-8080"]));
  const versions = (all: readonly Stored[]): string[] =>
    all.map(({ metadata }) => metadata.resourceVersion).filter((_, at) => CHILDREN[at] !== "service/gw");
  assert.deepEqual(versions(await Promise.all(CHILDREN.map(read))), versions(before));
});

test("what others change of ours is put back, and what they add stays", async () => {
  const image = (await read("deployment/gw")).spec.template.spec.containers[0]?.image;
  const drift = { spec: { replicas: 3, template: { spec: { containers: [{ name: "gwproxy", image: "other" }] } } } };
  await server.kubectl(["patch", "deployment", "gw", "-p", JSON.stringify(drift)]);
  await eventually(async () => {
    const { spec } = await read("deployment/gw");
    assert.equal(spec.template.spec.containers[0]?.image, image);
    assert.equal((spec as { replicas?: number }).replicas, 3);
  });
  await server.kubectl(["label", "service", "gw", "app.kubernetes.io/managed-by=somebody", "--overwrite"]);
  await eventually(async () =>
    assert.equal((await read("service/gw")).metadata.labels["app.kubernetes.io/managed-by"], "gwproxy"),
  );
});

test("what others delete is made again, and sessions end with the key alone", async () => {
  const before = new Map(
    await Promise.all(CHILDREN.map(async (child) => [child, (await read(child)).metadata.uid] as const)),
  );
  for (const child of CHILDREN) await server.kubectl(["delete", child, "--wait=false"]);
  await eventually(async () => {
    for (const child of CHILDREN) assert.notEqual((await read(child)).metadata.uid, before.get(child), child);
  });
  const key = Buffer.from((await read("secret/gw-session-key")).data["key"] ?? "", "base64").toString();
  assert.match(key, /^[0-9a-f]{64}$/);
});

test("a Secret that holds no key is not written over, and status says what to do", async () => {
  await server.kubectl(["create", "secret", "generic", "odd-session-key", "--from-literal=key=mine"]);
  await gateway("odd", [80]);
  const { status } = await says("odd", ["Accepted True Accepted", "Programmed False DeploymentFailed"]);
  assert.match(JSON.stringify(status), /holds no session key: its entry \\"key\\" must be 64 hexadecimal digits/);
  assert.equal((await read("secret/odd-session-key")).data["key"], Buffer.from("mine").toString("base64"));
  await server.kubectl(["delete", "secret", "odd-session-key"]);
  await reportReady("deployment/odd");
  await says("odd", SERVED);
});

test("an address that is asked for is waited for", async () => {
  await gateway("fixed", [80], { addresses: [{ type: "IPAddress", value: "192.0.2.9" }] });
  const waiting = await says("fixed", ["Accepted True Accepted", "Programmed False AddressNotAssigned"]);
  assert.deepEqual(waiting.status.addresses ?? [], []);
  assert.equal((await read("service/fixed")).spec.loadBalancerIP, "192.0.2.9");
  const ingress = { status: { loadBalancer: { ingress: [{ ip: "192.0.2.9" }] } } };
  const patch = ["--subresource=status", "--type=merge", "-p", JSON.stringify(ingress)];
  await server.kubectl(["patch", "service", "fixed", ...patch]);
  await reportReady("deployment/fixed");
  const assigned = await says("fixed", SERVED);
  assert.deepEqual(assigned.status.addresses, [{ type: "IPAddress", value: "192.0.2.9" }]);
  await gateway("fixed", [80]);
  await eventually(async () => assert.equal((await read("service/fixed")).spec.loadBalancerIP, undefined));
});

test("a Gateway that is not accepted keeps what it has, and changes nothing", async () => {
  const parametersRef = { group: "gwproxy.dev", kind: "GwParameters", name: "none" };
  await gateway("gw", [8080, 9090], { infrastructure: { parametersRef, labels: { team: "shop" } } });
  await says("gw", ["Accepted False InvalidParameters", "Programmed False Invalid"]);
  assert.deepEqual(
    (await read("service/gw")).spec.ports.map(({ port }) => port),
    [8080],
  );
  await gateway("gw", [8080, 9090], { infrastructure: { labels: { team: "shop" } } });
  await reportReady("deployment/gw");
  await says("gw", SERVED);
  for (const child of CHILDREN)
    await eventually(async () => assert.equal((await read(child)).metadata.labels["team"], "shop", child));
});

/** Writes GwParameters and a Gateway that uses them. */
async function parametrized(name: string, spec: object): Promise<void> {
  const parameters = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwParameters", metadata: { name }, spec };
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(parameters));
  await gateway(name, [80], {
    infrastructure: { parametersRef: { group: "gwproxy.dev", kind: "GwParameters", name } },
  });
}

async function message(name: string, type: string): Promise<string> {
  const path = `jsonpath={.status.conditions[?(@.type=="${type}")].message}`;
  return server.kubectl(["get", "gateway", name, "-o", path]);
}

test("parameters that are wrong stop their Gateway alone, pods stay, and the next edit mends it", async () => {
  await parametrized("edge", { deployment: { spec: { replicas: 2 } } });
  await eventually(async () => assert.equal((await readSpec("deployment/edge")).replicas, 2));
  const before = (await read("deployment/edge")).metadata.resourceVersion;
  await parametrized("edge", { deployment: { spec: { replicas: "three" } } });
  await says("edge", ["Accepted False InvalidParameters", "Programmed False Invalid"]);
  assert.equal(
    await message("edge", "Accepted"),
    "GwParameters default/edge spec.deployment.spec.replicas: must be a number",
  );
  await parametrized("edge", { rawConfig: { config: { loging: {} } } });
  await eventually(async () =>
    assert.match(await message("edge", "Accepted"), /default\/edge spec\.rawConfig\.config\.loging: is not a setting/),
  );
  await server.kubectl(["delete", "gwparameters", "edge"]);
  await eventually(async () =>
    assert.match(await message("edge", "Accepted"), /there is no GwParameters default\/edge in the namespaces/),
  );
  assert.equal((await read("deployment/edge")).metadata.resourceVersion, before);
  await parametrized("edge", { deployment: { spec: { replicas: 3 } } });
  await eventually(async () => assert.equal((await readSpec("deployment/edge")).replicas, 3));
});

test("what the API server refuses is told in its words, and the workload stays", async () => {
  const before = (await read("deployment/edge")).metadata.resourceVersion;
  const containers = [{ name: "sidecar" }];
  await parametrized("edge", { deployment: { spec: { template: { spec: { containers } } } } });
  await eventually(async () => {
    const stored = await read("gateway/edge");
    const programmed = stored.status.conditions.find(({ type }) => type === "Programmed");
    assert.equal(programmed?.reason, "DeploymentFailed");
  });
  assert.match(await message("edge", "Programmed"), /containers\[0\]\.image: Required value/);
  assert.equal((await read("deployment/edge")).metadata.resourceVersion, before);
});

test("a megabyte of settings is refused, by the controller or in the words of the API server, and the workload stays", async () => {
  const before = (await read("deployment/edge")).metadata.resourceVersion;
  // Applying on the client would copy the object into an annotation, which has less room.
  const replace = async (config: object): Promise<void> => {
    const kind = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwParameters", metadata: { name: "edge" } };
    await server.kubectl(["replace", "-f", "-"], JSON.stringify({ ...kind, spec: { rawConfig: { config } } }));
  };
  await replace({ ["\u{1F600}".repeat(250_000)]: {} });
  await eventually(async () =>
    assert.match(await message("edge", "Accepted"), /^GwParameters default\/edge spec\.rawConfig\.config\.\u{1F600}/u),
  );
  await replace({ spiffe: { endpoint: `unix:///${"a".repeat(1_050_000)}` } });
  await eventually(async () => assert.match(await message("edge", "Programmed"), /Too long|too long|too large/));
  assert.equal((await read("deployment/edge")).metadata.resourceVersion, before);
  // What was not applied would not be removed by applying.
  await server.kubectl(["delete", "gwparameters", "edge"]);
  await parametrized("edge", {});
});

test("an overlay may change the label of the controller, and its objects still come and go with it", async () => {
  const labels = { "app.kubernetes.io/managed-by": "team" };
  const disruption = { metadata: { labels }, spec: { minAvailable: 1 } };
  await parametrized("edge", { deployment: { metadata: { labels } }, podDisruptionBudget: disruption });
  const budget = "poddisruptionbudget/edge";
  await eventually(async () =>
    assert.equal((await read(budget)).metadata.labels["app.kubernetes.io/managed-by"], "team"),
  );
  await server.kubectl(["delete", "deployment", "edge", "--wait=false"]);
  await eventually(() => read("deployment/edge"));
  await parametrized("edge", {});
  await eventually(() => assert.rejects(() => read(budget), /not found/));
});

test("another kind of workload replaces the former one when its pods are ready", async () => {
  await parametrized("edge", { workload: { kind: "DaemonSet" } });
  await eventually(() => read("daemonset/edge"));
  await says("edge", ["Accepted True Accepted", "Programmed False Pending"]);
  await read("deployment/edge");
  const { generation } = (await read("daemonset/edge")).metadata;
  const pods = { desiredNumberScheduled: 1, currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1 };
  await reportReady("daemonset/edge", { ...pods, numberAvailable: 1, observedGeneration: generation });
  await eventually(() => assert.rejects(() => read("deployment/edge"), /not found/));
  await says("edge", SERVED);
});

test("parameters of the class shape all of its Gateways", async () => {
  const spec = { service: { spec: { type: "ClusterIP" } } };
  const parameters = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwParameters", metadata: { name: "defaults" }, spec };
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(parameters));
  const parametersRef = { group: "gwproxy.dev", kind: "GwParameters", name: "defaults", namespace: "default" };
  await server.kubectl([
    "patch",
    "gatewayclass",
    "gwproxy",
    "--type=merge",
    "-p",
    JSON.stringify({ spec: { parametersRef } }),
  ]);
  for (const name of ["gw", "edge"])
    await eventually(async () => assert.equal((await readSpec(`service/${name}`)).type, "ClusterIP", name));
});

async function readSpec(object: string): Promise<{ readonly replicas?: number; readonly type?: string }> {
  return (await read(object)).spec as { readonly replicas?: number; readonly type?: string }; // a workload or a Service
}

test("a Gateway with the name of the controller's own Deployment does not take it over", async () => {
  const inRelease = ["-n", "gwproxy-system"];
  const image = (): Promise<string> =>
    server.kubectl(["get", "deployment", "gwproxy", ...inRelease, "-o", "jsonpath={.spec.template.spec}"]);
  const before = await image();
  const object = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "gwproxy", namespace: "gwproxy-system" },
    spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
  };
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(object));
  const programmed = await eventually(async () => {
    const text = await server.kubectl(["get", "gateway", "gwproxy", ...inRelease, "-o", "json"]);
    const { status } = JSON.parse(text) as Stored;
    const found = status.conditions.find(({ type, status: is }) => type === "Programmed" && is === "False");
    assert.equal(found?.reason, "DeploymentFailed");
    return JSON.stringify(found);
  });
  assert.match(
    programmed,
    /gwproxy-system\/gwproxy exists and is not part of a Gateway; give the Gateway another name/,
  );
  assert.equal(await image(), before);
  await server.kubectl(["delete", "gateway", "gwproxy", ...inRelease]);
});

test("its own rights were enough for all of that", () => {
  assert.doesNotMatch(controller.output(), /forbidden|cannot be listed/);
});

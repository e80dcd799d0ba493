/** When the deployer writes and when it does not, against a cluster in memory that defaults and versions as a server does. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { MANAGED_BY_LABEL } from "../../../src/api/data-plane.ts";
import { objectId, objectKey, type KubeObject, type ObjectId } from "../../../src/api/object.ts";
import type { ObjectClient } from "../../../src/deployer/client.ts";
import { createComparison } from "../../../src/deployer/compare.ts";
import type { DeployerSettings, Manifest, OwnerReference } from "../../../src/deployer/objects/context.ts";
import { Deployer } from "../../../src/deployer/deployer.ts";
import type { DeploymentPlan } from "../../../src/translator/gateways/deployment-plan.ts";
import { mergeParameters, NO_PARAMETERS } from "../../../src/translator/parameters/merge.ts";
import type { TranslatorEvent } from "../../../src/translator/translator.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";

const SETTINGS: DeployerSettings = {
  image: { registry: "ghcr.io/gwproxy", repository: "proxy", tag: "1.2.3" },
  imagePullSecrets: [],
  ambientIdentityHosts: "",
  className: "gwproxy",
  mesh: { autoEnabled: false, caAddress: "", clusterId: "", network: "" },
  version: "1.2.3",
  xdsAddress: "http://gwproxy.gwproxy-system.svc:9978",
  xdsCa: undefined,
  noListenersPort: 0,
};

function placementOf(ports: readonly number[], more: Partial<DeploymentPlan> = {}): DeploymentPlan {
  return {
    gateway: { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "default", name: "gw" },
    uid: "uid-of-gw",
    className: "gwproxy",
    isForeign: false,
    ports,
    labels: {},
    annotations: {},
    parameters: NO_PARAMETERS,
    address: undefined,
    error: undefined,
    addressError: undefined,
    ...more,
  };
}

/** Objects by key, with a log of what was written. */
class MemoryCluster implements ObjectClient {
  readonly objects = new Map<string, KubeObject>();
  readonly writes: string[] = [];
  /** What the next applications of a kind answer with. */
  refuse: { readonly kind: string; readonly message: string } | undefined;
  /** Hears of each change, as a watch would. */
  watch: (event: TranslatorEvent) => void = () => undefined;
  #version = 0;

  apply(manifest: Manifest): Promise<KubeObject> {
    if (this.refuse?.kind === manifest.kind) return Promise.reject(new Error(this.refuse.message));
    this.writes.push(`apply ${manifest.kind} ${manifest.metadata.name}`);
    return Promise.resolve(this.put(manifest));
  }

  read(id: ObjectId): Promise<KubeObject | undefined> {
    return Promise.resolve(this.objects.get(objectKey(id)));
  }

  inspect(id: ObjectId): Promise<KubeObject | undefined> {
    return this.read(id);
  }

  remove(object: KubeObject): Promise<void> {
    this.writes.push(`delete ${object.kind} ${object.metadata.name}`);
    this.take(objectId(object));
    return Promise.resolve();
  }

  /** A server adds fields of its own. */
  put(object: KubeObject): KubeObject {
    const { name, namespace = "" } = object.metadata;
    const key = objectKey(objectId(object));
    const uid = this.objects.get(key)?.metadata.uid ?? `uid-${++this.#version}`;
    const metadata = { ...object.metadata, name, namespace, uid, resourceVersion: String(++this.#version) };
    const stored = { status: {}, ...object, metadata };
    this.objects.set(key, stored);
    this.watch({ type: "set", object: stored });
    return stored;
  }

  take(id: ObjectId): void {
    this.objects.delete(objectKey(id));
    this.watch({ type: "delete", id });
  }

  find(kind: string, name: string): KubeObject {
    const found = [...this.objects.values()].find((one) => one.kind === kind && one.metadata.name === name);
    assert.ok(found !== undefined, `there is no ${kind} ${name}`);
    return found;
  }
}

interface Bench {
  readonly cluster: MemoryCluster;
  readonly deployer: Deployer;
  /** Called when the state of the Gateway is another one. */
  onState: () => void;
  place(placement: DeploymentPlan | undefined): Promise<void>;
  /** Resolves when nothing is waiting, and takes what was written until then. */
  written(): Promise<string[]>;
}

function bench(t: TestContext, settings: DeployerSettings = SETTINGS): Bench {
  const cluster = new MemoryCluster();
  const deployer = new Deployer({
    client: cluster,
    log: recordingLog().log,
    settings,
    onState: () => made.onState(),
    retryMs: { initial: 1, max: 2 },
  });
  cluster.watch = (event) => deployer.observe([event]);
  t.after(() => deployer.stop());
  const written = async (): Promise<string[]> => {
    await deployer.idle();
    // What was seen during a write is looked at again after it.
    await new Promise(setImmediate);
    await deployer.idle();
    return cluster.writes.splice(0);
  };
  const made: Bench = {
    cluster,
    deployer,
    onState: () => undefined,
    written,
    async place(placement) {
      deployer.deploy(new Map([["default/gw", placement]]));
      await deployer.idle();
    },
  };
  return made;
}

const ALL = [
  "apply ServiceAccount gw",
  "apply ConfigMap gw",
  "apply Secret gw-session-key",
  "apply Service gw",
  "apply Deployment gw",
];

test("everything is applied once, in the order in which pods need it, and only what changes again", async (t) => {
  const { deployer, place, written } = bench(t);
  deployer.lead();
  await place(placementOf([80]));
  assert.deepEqual(await written(), ALL);
  await place(placementOf([80], { className: "gwproxy" }));
  assert.deepEqual(await written(), []);
  await place(placementOf([80, 81]));
  assert.deepEqual(await written(), ["apply Service gw"]);
});

test("a replica that does not lead only watches, and finds everything done when it does", async (t) => {
  const leader = bench(t);
  leader.deployer.lead();
  await leader.place(placementOf([80]));
  await leader.written();
  const { cluster, deployer, place, written } = bench(t);
  await place(placementOf([80]));
  for (const object of leader.cluster.objects.values()) cluster.put(object);
  assert.deepEqual(await written(), []);
  deployer.lead();
  assert.deepEqual(await written(), [], "what the other replica applied is as it should be");
  deployer.follow();
  await place(placementOf([81]));
  assert.deepEqual(await written(), []);
});

test("what is no longer wanted is deleted, and only what this Gateway controls", async (t) => {
  const { cluster, deployer, place, written } = bench(t, { ...SETTINGS, xdsCa: "PEM" });
  deployer.lead();
  await place(placementOf([80]));
  assert.ok((await written()).includes("apply ConfigMap gw-xds-ca"));
  const owned = cluster.find("ConfigMap", "gw-xds-ca");
  const ownerReferences = [{ ...ownerOf(owned), uid: "uid-of-an-earlier-gw" }];
  cluster.put({
    ...owned,
    metadata: { ...owned.metadata, name: "left-behind", ownerReferences } as Manifest["metadata"],
  });
  deployer.configure(SETTINGS);
  const writes = await written();
  assert.deepEqual(
    writes.filter((write) => write.startsWith("delete")),
    ["delete ConfigMap gw-xds-ca"],
  );
});

function ownerOf(object: KubeObject): OwnerReference {
  const [owner] = (object as Manifest).metadata.ownerReferences; // it was applied as a manifest
  assert.ok(owner !== undefined);
  return owner;
}

test("a Gateway that another controller has taken over loses what was made for it, and nothing else", async (t) => {
  const { cluster, deployer, place, written } = bench(t);
  deployer.lead();
  await place(placementOf([80]));
  await written();
  const service = cluster.find("Service", "gw");
  // An overlay may change labels, so they do not tell whose an object is.
  cluster.put({ ...service, metadata: { ...service.metadata, labels: { [MANAGED_BY_LABEL]: "somebody" } } });
  await written();
  cluster.put({ ...service, metadata: { ...service.metadata, name: "theirs", annotations: {} } });
  await place(placementOf([], { isForeign: true }));
  assert.deepEqual((await written()).toSorted(), ALL.map((write) => write.replace("apply", "delete")).toSorted());
});

test("a Gateway that is not accepted, or has no port, is left as it is", async (t) => {
  const { deployer, place, written } = bench(t);
  deployer.lead();
  const error = { reason: "InvalidParameters", message: "no" } as const;
  await place(placementOf([80], { error }));
  await place(placementOf([80], { addressError: error }));
  await place(placementOf([]));
  await place(placementOf([15_021]));
  assert.deepEqual(await written(), []);
  deployer.configure({ ...SETTINGS, noListenersPort: 443 });
  assert.deepEqual(await written(), ALL);
  await place(undefined);
  assert.deepEqual(await written(), [], "the garbage collector takes what a Gateway leaves behind");
});

test("a failure is told, tried again, and forgotten when it is over", async (t) => {
  const made = bench(t);
  const { cluster, deployer, place, written } = made;
  deployer.lead();
  cluster.refuse = { kind: "Service", message: "no quota is left" };
  const failed = new Promise<void>((resolve) => {
    made.onState = () => {
      if (deployer.state("default/gw").failure !== undefined) resolve();
    };
  });
  deployer.deploy(new Map([["default/gw", placementOf([80])]]));
  await failed;
  assert.equal(deployer.state("default/gw").failure, "no quota is left");
  cluster.refuse = undefined;
  assert.deepEqual((await written()).slice(-2), ALL.slice(-2));
  assert.equal(deployer.state("default/gw").failure, undefined);
  await place(undefined);
});

test("a session key that is there stays, also when nothing was seen of it", async (t) => {
  const { cluster, deployer, place } = bench(t);
  cluster.watch = () => undefined;
  const key = "ab".repeat(32);
  const data = { key: Buffer.from(key).toString("base64") };
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "gw-session-key", namespace: "default" }, data };
  cluster.put(secret);
  deployer.lead();
  await place(placementOf([80]));
  const stored = cluster.find("Secret", "gw-session-key") as KubeObject & { data: { key: string } };
  assert.equal(Buffer.from(stored.data.key, "base64").toString(), key);
});

test("the Service of an earlier Gateway of the same name gives no address", async (t) => {
  const { cluster, deployer, place } = bench(t);
  deployer.lead();
  await place(placementOf([80]));
  const service = cluster.find("Service", "gw");
  cluster.put({ ...service, spec: { clusterIP: "10.0.0.1" } } as KubeObject);
  assert.deepEqual(deployer.state("default/gw").addresses, [{ type: "IPAddress", value: "10.0.0.1" }]);
  deployer.deploy(new Map([["default/gw", placementOf([80], { uid: "made-anew" })]]));
  assert.deepEqual(deployer.state("default/gw").addresses, []);
  await deployer.idle();
});

test("a value that the server writes in its own way is not applied for ever", () => {
  const comparison = createComparison();
  const metadata = { name: "a", namespace: "b", labels: {}, annotations: {}, ownerReferences: [] };
  const wanted: Manifest = {
    apiVersion: "v1",
    kind: "Thing",
    metadata,
    spec: { cpu: "1000m", list: [{ name: "x", a: 1 }] },
  };
  const stored = { ...wanted, spec: { cpu: "1", list: [{ name: "other" }, { name: "x", a: 1, b: 2 }] } };
  assert.equal(comparison.isCurrent(wanted, stored), false);
  comparison.remember(wanted, stored);
  assert.equal(comparison.isCurrent(wanted, stored), true);
  assert.equal(comparison.isCurrent(wanted, { ...stored, spec: { ...stored.spec, cpu: "2" } } as KubeObject), false);
});

test("another kind of workload is applied first, and replaces the former one when it serves", async (t) => {
  const { cluster, deployer, place, written } = bench(t);
  deployer.lead();
  await place(placementOf([80]));
  await written();
  await place(placementOf([80], { parameters: mergeParameters([{ workload: { kind: "DaemonSet" } }]) }));
  assert.deepEqual(await written(), ["apply DaemonSet gw"]);
  const pods = { desiredNumberScheduled: 2, numberAvailable: 1 };
  cluster.put({ ...cluster.find("DaemonSet", "gw"), status: pods } as KubeObject);
  assert.deepEqual(await written(), []);
  cluster.put({ ...cluster.find("DaemonSet", "gw"), status: { ...pods, numberAvailable: 2 } } as KubeObject);
  assert.deepEqual(await written(), ["delete Deployment gw"]);
});

test("objects of overlays come and go with them", async (t) => {
  const { deployer, place, written } = bench(t);
  deployer.lead();
  await place(placementOf([80]));
  await written();
  const overlays = { podDisruptionBudget: { spec: { minAvailable: 1 } }, horizontalPodAutoscaler: {} };
  await place(placementOf([80], { parameters: mergeParameters([overlays]) }));
  assert.deepEqual(await written(), ["apply PodDisruptionBudget gw", "apply HorizontalPodAutoscaler gw"]);
  await place(placementOf([80]));
  assert.deepEqual((await written()).toSorted(), [
    "delete HorizontalPodAutoscaler gw",
    "delete PodDisruptionBudget gw",
  ]);
});

test("a key in the variables makes no Secret, and leaves the one that is there", async (t) => {
  const { cluster, deployer, place, written } = bench(t);
  deployer.lead();
  const parameters = mergeParameters([{ env: [{ name: "SESSION_KEY", value: "ab".repeat(32) }] }]);
  await place(placementOf([80], { parameters }));
  assert.deepEqual(
    await written(),
    ALL.filter((write) => !write.includes("Secret")),
  );
  await place(placementOf([80]));
  assert.ok((await written()).includes("apply Secret gw-session-key"));
  await place(placementOf([80], { parameters }));
  assert.deepEqual(await written(), ["apply Deployment gw"]);
  assert.equal(cluster.find("Secret", "gw-session-key").kind, "Secret");
});

const SHOP = { apiVersion: "apps/v1", kind: "Deployment", name: "shop", uid: "uid-of-shop", controller: true };
/** Objects of the names of a data plane that are somebody else's, and what is said of them. */
const FOREIGN: readonly (readonly [kind: string, name: string, owner: object | undefined, said: RegExp])[] = [
  ["Deployment", "gw", undefined, /Deployment default\/gw exists and is not part of a Gateway; give the Gate/],
  ["Service", "gw", undefined, /Service default\/gw exists and is not part of a Gateway/],
  ["ServiceAccount", "gw", undefined, /ServiceAccount default\/gw exists/],
  ["ConfigMap", "gw", SHOP, /ConfigMap default\/gw exists and belongs to Deployment shop/],
  ["Secret", "gw-session-key", SHOP, /Secret default\/gw-session-key belongs to Deployment shop/],
];

for (const [kind, name, owner, said] of FOREIGN)
  test(`a ${kind} of a name of the data plane that is somebody else's is left alone until it is gone`, async (t) => {
    const made = bench(t);
    const { cluster, deployer, place, written } = made;
    const owners = owner === undefined ? {} : { ownerReferences: [owner] };
    // The Secret could be used: it holds a key.
    const data = kind === "Secret" ? { data: { key: Buffer.from("ab".repeat(32)).toString("base64") } } : {};
    const apiVersion = kind === "Deployment" ? "apps/v1" : "v1";
    const foreign = { apiVersion, kind, metadata: { name, namespace: "default", ...owners }, ...data };
    cluster.put(foreign);
    deployer.lead();
    const failed = new Promise<void>((resolve) => {
      made.onState = () => {
        if (deployer.state("default/gw").failure !== undefined) resolve();
      };
    });
    deployer.deploy(new Map([["default/gw", placementOf([80])]]));
    await failed;
    assert.match(deployer.state("default/gw").failure ?? "", said);
    assert.deepEqual(cluster.writes, [], "nothing is half deployed");
    cluster.take(objectId(foreign));
    await place(placementOf([80]));
    assert.deepEqual(await written(), ALL);
  });

test("the state is told when the first pod is ready and when the last one is gone, and not in between", async (t) => {
  const made = bench(t);
  const { cluster, deployer, place, written } = made;
  deployer.lead();
  await place(placementOf([80]));
  await written();
  const told: boolean[] = [];
  made.onState = () => void told.push(deployer.state("default/gw").hasReadyPods);
  for (const readyReplicas of [0, 1, 2, 1, 0])
    cluster.put({ ...cluster.find("Deployment", "gw"), status: { readyReplicas } } as KubeObject);
  assert.deepEqual(told, [true, false]);
});

test("settings of the controller reach the pods", async (t) => {
  const mesh = { ...SETTINGS.mesh, autoEnabled: true, clusterId: "west" };
  const settings = { ...SETTINGS, imagePullSecrets: ["registry"], ambientIdentityHosts: "*.example.com", mesh };
  const { cluster, deployer, place } = bench(t, settings);
  deployer.lead();
  await place(placementOf([80]));
  const text = JSON.stringify(cluster.find("Deployment", "gw"));
  assert.match(text, /"imagePullSecrets":\[{"name":"registry"}\]/);
  assert.match(text, /{"name":"GWPROXY_AMBIENT_IDENTITY_HOSTS","value":"\*\.example\.com"}/);
  assert.match(text, /{"name":"CLUSTER_ID","value":"west"}/);
  await place(placementOf([80], { className: "other" }));
  assert.doesNotMatch(JSON.stringify(cluster.find("Deployment", "gw")), /CLUSTER_ID/, "only the own class has a mesh");
});

/** Statuses on a real API server: written once per change, beside what other controllers wrote, and repaired when lost. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { STANDARD_KINDS } from "../../src/sources/kubernetes/kinds.ts";
import { createKubernetesSource, type KubernetesSource } from "../../src/sources/kubernetes/kubernetes-source.ts";
import { createKubernetesStatusClient } from "../../src/sources/kubernetes/status-client.ts";
import type { DesiredCondition, DesiredStatus } from "../../src/status/desired.ts";
import { computeStatus } from "../../src/status/compute.ts";
import { createStatusWriter, type StatusClient, type StatusWriter } from "../../src/status/writer.ts";
import { createTranslator } from "../../src/translator/translate.ts";
import { defineGatewayKinds } from "../support/kubernetes/cluster.ts";
import { RecordingSink } from "../support/gateway/recording-sink.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

const CONTROLLER = "gwproxy.dev/gwproxy";
const GROUP = "gateway.networking.k8s.io";

interface Stored {
  readonly metadata: { readonly resourceVersion: string };
  readonly status: {
    readonly parents: readonly { readonly controllerName: string; readonly conditions: readonly StoredCondition[] }[];
    readonly conditions: readonly StoredCondition[];
    readonly listeners: readonly { readonly name: string; readonly attachedRoutes: number }[];
    readonly addresses?: readonly unknown[];
  };
}

interface StoredCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly lastTransitionTime: string;
}

let server: ApiServer;
let client: KubernetesClient;
let source: KubernetesSource;
let sink: RecordingSink;
let writer: StatusWriter;
/** Every write that reached the server, by object name. */
const writes: string[] = [];

before(async () => {
  server = await startApiServer();
  await defineGatewayKinds(server);
  client = await createKubernetesClient(server.kubeconfig);
  const { log } = recordingLog();
  source = createKubernetesSource({ client, kinds: STANDARD_KINDS, log });
  sink = new RecordingSink();
  await source.start(sink);
  const statusClient: StatusClient = createKubernetesStatusClient({
    client,
    kinds: STANDARD_KINDS,
    fieldManager: CONTROLLER,
    current: (id) => source.current(id),
  });
  const counting: StatusClient = {
    read: (id, isFresh) => statusClient.read(id, isFresh),
    apply: (id, status) => {
      writes.push(id.name);
      return statusClient.apply(id, status);
    },
    replace: async (id, version, status) => {
      const outcome = await statusClient.replace(id, version, status);
      writes.push(outcome === "written" ? id.name : `${id.name}: ${outcome}`);
      return outcome;
    },
  };
  writer = createStatusWriter({ client: counting, log, retryMs: { initial: 10, max: 100 } });
});

after(async () => {
  await writer?.stop();
  await source?.stop();
  client?.close();
  await server?.stop();
});

async function apply(object: object): Promise<void> {
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(object));
}

async function read(kind: string, name: string): Promise<Stored> {
  return JSON.parse(await server.kubectl(["get", kind, name, "-o", "json"])) as Stored;
}

function condition(type: string, status: "True" | "False", reason: string = type): DesiredCondition {
  return { type, status, reason, message: "because", observedGeneration: 1 };
}

function routeStatus(name: string, ...conditions: DesiredCondition[]): DesiredStatus {
  return {
    id: { group: GROUP, kind: "HTTPRoute", namespace: "default", name },
    form: "listed",
    list: "parents",
    controllerName: CONTROLLER,
    entries: conditions.length === 0 ? [] : [{ ref: { name: "gw", namespace: "default" }, conditions }],
  };
}

const route = (name: string): object => ({
  apiVersion: `${GROUP}/v1`,
  kind: "HTTPRoute",
  metadata: { name, namespace: "default" },
  spec: { parentRefs: [{ name: "gw" }] },
});

const FOREIGN = {
  parentRef: { group: GROUP, kind: "Gateway", name: "other" },
  controllerName: "example.com/other",
  conditions: [
    {
      type: "Accepted",
      status: "True",
      reason: "Accepted",
      message: "",
      observedGeneration: 1,
      lastTransitionTime: "2020-01-01T00:00:00Z",
    },
  ],
};

async function writeForeign(name: string, parents: readonly unknown[]): Promise<void> {
  const patch = JSON.stringify({ status: { parents } });
  await server.kubectl(["patch", "httproute", name, "--subresource=status", "--type=merge", "-p", patch]);
}

function countWrites(name: string): number {
  return writes.filter((written) => written === name).length;
}

test("a route's status is written once per change, and another controller's entry survives", async () => {
  await apply(route("shared"));
  await writeForeign("shared", [FOREIGN]);

  writer.put(routeStatus("shared", condition("Accepted", "True"), condition("ResolvedRefs", "True")));
  await writer.idle();
  const first = await read("httproute", "shared");
  assert.deepEqual(
    first.status.parents.map(({ controllerName }) => controllerName),
    ["example.com/other", CONTROLLER],
  );
  assert.deepEqual(first.status.parents[0], FOREIGN);
  assert.equal(countWrites("shared"), 1);

  writer.put(routeStatus("shared", condition("Accepted", "True"), condition("ResolvedRefs", "True")));
  await writer.idle();
  assert.equal((await read("httproute", "shared")).metadata.resourceVersion, first.metadata.resourceVersion);
  assert.equal(countWrites("shared"), 1, "what is there already is not written again");

  writer.put(
    routeStatus("shared", condition("Accepted", "True"), condition("ResolvedRefs", "False", "BackendNotFound")),
  );
  await writer.idle();
  const second = await read("httproute", "shared");
  assert.equal(
    second.status.parents[1]?.conditions.find(({ type }) => type === "ResolvedRefs")?.reason,
    "BackendNotFound",
  );
  assert.equal(countWrites("shared"), 2);

  writer.put(routeStatus("shared"));
  await writer.idle();
  assert.deepEqual((await read("httproute", "shared")).status.parents, [FOREIGN], "only our entry is taken away");
});

test("a write on an old version is refused by the server and done again on the new one", async () => {
  await apply(route("raced"));
  await sink.until(({ objects }) => objects.has(`${GROUP}/HTTPRoute/default/raced`));
  const id = routeStatus("raced").id;
  const stale = source.current(id);
  await writeForeign("raced", [FOREIGN]);
  const { log } = recordingLog();
  const statusClient = createKubernetesStatusClient({
    client,
    kinds: STANDARD_KINDS,
    fieldManager: CONTROLLER,
    current: () => stale,
  });
  const outcomes: string[] = [];
  const racing = createStatusWriter({
    log,
    client: {
      ...statusClient,
      replace: async (...args) => {
        const outcome = await statusClient.replace(...args);
        outcomes.push(outcome);
        return outcome;
      },
    },
  });
  racing.put(routeStatus("raced", condition("Accepted", "True")));
  await racing.idle();
  assert.deepEqual(outcomes, ["conflict", "written"]);
  const { parents } = (await read("httproute", "raced")).status;
  assert.deepEqual(
    parents.map(({ controllerName }) => controllerName),
    ["example.com/other", CONTROLLER],
  );
});

test("an entry that somebody removed comes back", async () => {
  await apply(route("robbed"));
  writer.put(routeStatus("robbed", condition("Accepted", "True")));
  await writer.idle();
  await writeForeign("robbed", [FOREIGN]);
  const key = `${GROUP}/HTTPRoute/default/robbed`;
  const entriesOf = (object: unknown): readonly unknown[] =>
    (object as { status?: { parents?: readonly unknown[] } } | undefined)?.status?.parents ?? [];
  await sink.until(
    ({ objects }) => entriesOf(objects.get(key)).length === 1 && JSON.stringify(objects.get(key)).includes("other"),
  );
  const seen = sink.objects.get(key);
  assert.ok(seen !== undefined);
  writer.observe(seen);
  await writer.idle();
  assert.equal((await read("httproute", "robbed")).status.parents.length, 2);
});

test("a Gateway's status is applied: foreign conditions stay, listeners that are gone go", async () => {
  await apply({
    apiVersion: `${GROUP}/v1`,
    kind: "Gateway",
    metadata: { name: "gw", namespace: "default" },
    spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
  });
  const foreign = { ...FOREIGN.conditions[0], type: "example.com/Audited" };
  await server.kubectl([
    "patch",
    "gateway",
    "gw",
    "--subresource=status",
    "--type=merge",
    "-p",
    JSON.stringify({ status: { conditions: [foreign] } }),
  ]);
  const listener = (name: string, attachedRoutes: number): object => ({
    name,
    attachedRoutes,
    supportedKinds: [{ group: GROUP, kind: "HTTPRoute" }],
    conditions: [condition("Accepted", "True"), condition("Programmed", "True")],
  });
  const gateway = (listeners: readonly object[]): DesiredStatus =>
    ({
      id: { group: GROUP, kind: "Gateway", namespace: "default", name: "gw" },
      form: "keyed",
      conditions: [condition("Accepted", "True"), condition("Programmed", "True")],
      listeners,
      addresses: [{ type: "IPAddress", value: "10.0.0.1" }],
    }) as DesiredStatus; // listeners are built above in their shape

  writer.put(gateway([listener("http", 1), listener("https", 0)]));
  await writer.idle();
  const first = await read("gateway", "gw");
  assert.deepEqual(first.status.conditions.map(({ type }) => type).sort(), [
    "Accepted",
    "Programmed",
    "example.com/Audited",
  ]);
  assert.deepEqual(first.status.listeners.map(({ name }) => name).sort(), ["http", "https"]);
  assert.deepEqual(first.status.addresses, [{ type: "IPAddress", value: "10.0.0.1" }]);
  assert.equal(countWrites("gw"), 1);

  writer.put(gateway([listener("http", 1), listener("https", 0)]));
  await writer.idle();
  assert.equal((await read("gateway", "gw")).metadata.resourceVersion, first.metadata.resourceVersion);

  writer.put(gateway([listener("http", 2)]));
  await writer.idle();
  const second = await read("gateway", "gw");
  assert.deepEqual(
    second.status.listeners.map(({ name, attachedRoutes }) => [name, attachedRoutes]),
    [["http", 2]],
  );
  assert.deepEqual(
    second.status.conditions.find(({ type }) => type === "Accepted"),
    first.status.conditions.find(({ type }) => type === "Accepted"),
    "a condition that says the same keeps its time",
  );
});

test("the status of an object that is gone is not an error", async () => {
  writer.put(routeStatus("never-was", condition("Accepted", "True")));
  await writer.idle();
  assert.equal(countWrites("never-was"), 0);
});

const GATEWAY_KINDS = ["GatewayClass", "Gateway", "ListenerSet", "GRPCRoute", "BackendTLSPolicy"] as const;

const SECOND = {
  parentRefs: [{ kind: "ListenerSet", name: "more", sectionName: "extra" }],
  rules: [{ backendRefs: [{ name: "kept", port: 80 }] }],
};

/** One object of each kind whose status is ours, all of them in one Gateway. */
function everyKind(): object[] {
  const object = (kind: string, name: string, spec: object): object => ({
    apiVersion: kind === "Service" ? "v1" : `${GROUP}/v1`,
    kind,
    metadata: kind === "GatewayClass" ? { name } : { name, namespace: "default" },
    spec,
  });
  const listener = { name: "http", port: 80, protocol: "HTTP" };
  return [
    object("GatewayClass", "ours", { controllerName: CONTROLLER }),
    object("Gateway", "whole", {
      gatewayClassName: "ours",
      listeners: [listener],
      allowedListeners: { namespaces: { from: "Same" } },
    }),
    object("ListenerSet", "more", {
      parentRef: { name: "whole" },
      listeners: [
        { ...listener, name: "extra", port: 81 },
        { ...listener, name: "lost" },
      ],
    }),
    object("Service", "kept", { ports: [{ port: 80 }] }),
    object("GRPCRoute", "second", SECOND),
    object("BackendTLSPolicy", "tls", {
      targetRefs: [{ group: "", kind: "Service", name: "kept" }],
      validation: { hostname: "kept.example.com", wellKnownCACertificates: "System" },
    }),
  ];
}

test("the server takes what is computed for each kind of the Gateway API, once", async () => {
  const objects = everyKind();
  for (const object of objects) await apply(object);
  const translator = createTranslator({ controllerName: CONTROLLER, implicitClass: undefined });
  const keys = ["GatewayClass//ours", "Gateway/default/whole", "ListenerSet/default/more"];
  keys.push("GRPCRoute/default/second", "BackendTLSPolicy/default/tls");
  await sink.until(({ objects: seen }) => keys.every((key) => seen.has(`${GROUP}/${key}`)));
  await sink.until(({ objects: seen }) => seen.has("/Service/default/kept"));
  const seen = [...sink.objects.values()].filter(({ metadata }) => metadata.name !== "gw");
  const { touched } = translator.apply(seen.map((object) => ({ type: "set", object })));
  const context = {
    controllerName: CONTROLLER,
    acknowledged: () => true,
    hasDataPlane: () => false,
    nackReason: () => undefined,
  };
  const put = async (): Promise<void> => {
    for (const id of touched) {
      const facts = (GATEWAY_KINDS as readonly string[]).includes(id.kind) ? translator.statusInput(id) : undefined;
      if (facts !== undefined) writer.put(computeStatus(facts, context));
    }
    await writer.idle();
  };
  await put();
  const text = async (kind: string, name: string, path: string): Promise<string> =>
    server.kubectl(["get", kind, name, "-o", `jsonpath={${path}}`]);
  assert.match(
    await text("gatewayclass", "ours", ".status.supportedFeatures[*].name"),
    /\bGRPCRoute\b.*\bListenerSet\b/,
  );
  assert.equal(await text("gateway", "whole", ".status.attachedListenerSets"), "1");
  assert.equal(await text("listenerset", "more", ".status.listeners[?(@.name=='extra')].attachedRoutes"), "1");
  const lost = ".status.listeners[?(@.name=='lost')].conditions[?(@.type=='Conflicted')].reason";
  assert.equal(await text("listenerset", "more", lost), "HostnameConflict");
  assert.equal(await text("grpcroute", "second", ".status.parents[0].parentRef.kind"), "ListenerSet");
  assert.equal(await text("backendtlspolicy", "tls", ".status.ancestors[0].conditions[0].reason"), "Accepted");
  await sink.until(({ objects: stored }) =>
    keys.every((key) => JSON.stringify(stored.get(`${GROUP}/${key}`)).includes("observedGeneration")),
  );
  const before = writes.length;
  await put();
  assert.equal(writes.length, before, "what is there already is not written again");
});

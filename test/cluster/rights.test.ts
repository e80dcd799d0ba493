/**
 * The rights that the chart grants, on a real API server: the controller with them alone does all of its work, and no right
 * is left over. Everything that the controller can do is done here once; the server records the requests, and every right
 * has to be one without which a recorded request would have been refused.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createDocumentStore } from "../../src/sources/kubernetes/document-store.ts";
import { createEventRecorder } from "../../src/sources/kubernetes/events.ts";
import { createKubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { INFERENCE_KINDS, OWN_KINDS, STANDARD_KINDS } from "../../src/sources/kubernetes/kinds.ts";
import { createKubernetesStatusClient } from "../../src/sources/kubernetes/status-client.ts";
import { reviewToken } from "../../src/sources/kubernetes/token-review.ts";
import { freePort } from "../support/fixtures/free-ports.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { eventually, startGwproxy } from "../support/gateway/process.ts";
import { renderChart } from "../support/kubernetes/chart.ts";
import {
  CHART_FLAGS,
  controllerKubeconfig,
  defineInferenceKinds,
  installForAccount,
  startCluster,
  startController,
} from "../support/kubernetes/cluster.ts";
import { describeRight, isAllowed, listRights, parseAuditLog, type Right } from "../support/kubernetes/rights.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { AUDIT_LOG, type ApiServer } from "../testbed/api-server.ts";

const GATEWAY = "gateway.networking.k8s.io/v1";
const OURS = "gwproxy.dev/v1alpha1";
const POOLS = "inference.networking.k8s.io/v1";
/** The deployer's rights in listed namespaces only, so that those of the controller's own namespace stand alone. */
const VALUES = { rbac: { gatewayNamespaces: ["default"] }, inferenceExtension: { enabled: true } };

/** An object with the parts of each kind whose status the controller writes. */
function object(apiVersion: string, kind: string, name: string, spec: object): object {
  return { apiVersion, kind, metadata: { name, namespace: "default" }, spec };
}

function gateway(name: string, gatewayClassName: string): object {
  const ports = [
    { name: "http", port: 80, protocol: "HTTP" },
    { name: "tcp", port: 90, protocol: "TCP" },
    { name: "tls", port: 93, protocol: "TLS", tls: { mode: "Passthrough" } },
  ];
  const listeners = ports.map((port) => ({ ...port, allowedRoutes: { namespaces: { from: "Same" } } }));
  const parametersRef = { group: "gwproxy.dev", kind: "GwParameters", name };
  const allowedListeners = { namespaces: { from: "Same" } };
  return object(GATEWAY, "Gateway", name, {
    gatewayClassName,
    listeners,
    allowedListeners,
    infrastructure: { parametersRef },
  });
}

function manifests(): object[] {
  const parentRefs = [{ name: "one" }];
  const backendRefs = [{ name: "web", port: 80 }];
  const target = (kind: string, name: string): object => ({ group: "gateway.networking.k8s.io", kind, name });
  const web = { group: "", kind: "Service", name: "web" };
  const pool = { group: "inference.networking.k8s.io", kind: "InferencePool", name: "llama" };
  const budget = { podDisruptionBudget: { spec: { minAvailable: 1 } } };
  const scaled = { ...budget, horizontalPodAutoscaler: { spec: { maxReplicas: 2 } } };
  return [
    object(OURS, "GwParameters", "defaults", {}),
    object(OURS, "GwParameters", "one", scaled),
    object(OURS, "GwParameters", "each", { ...budget, workload: { kind: "DaemonSet" } }),
    gateway("one", "gwproxy"),
    gateway("each", "gwproxy"),
    object("v1", "Service", "web", { ports: [{ port: 80 }] }),
    object(GATEWAY, "HTTPRoute", "http", { parentRefs, hostnames: ["web.test"], rules: [{ backendRefs }] }),
    // Without a host it would take that of the others, which are then not accepted.
    object(GATEWAY, "GRPCRoute", "grpc", { parentRefs, hostnames: ["grpc.test"], rules: [{ backendRefs }] }),
    object(GATEWAY, "TCPRoute", "tcp", { parentRefs, rules: [{ backendRefs }] }),
    object(GATEWAY, "TLSRoute", "tls", { parentRefs, hostnames: ["a.test"], rules: [{ backendRefs }] }),
    object(GATEWAY, "ListenerSet", "more", {
      parentRef: { ...target("Gateway", "one") },
      listeners: [{ name: "more", port: 91, protocol: "HTTP" }],
    }),
    object(GATEWAY, "BackendTLSPolicy", "web", {
      targetRefs: [web],
      validation: { hostname: "web.test", wellKnownCACertificates: "System" },
    }),
    object(POOLS, "InferencePool", "llama", {
      selector: { matchLabels: { app: "llama" } },
      targetPorts: [{ number: 8000 }],
      endpointPickerRef: { name: "web", port: { number: 80 } },
    }),
    object(GATEWAY, "HTTPRoute", "llama", { parentRefs, hostnames: ["llama.test"], rules: [{ backendRefs: [pool] }] }),
    object(OURS, "GwBackend", "gone", { static: { host: "web.test", port: 80 } }),
    object(OURS, "GwModel", "small", { parentRefs, match: { model: "small" }, provider: "llma" }),
    object(OURS, "GwPolicy", "patient", {
      targetRefs: [target("HTTPRoute", "http")],
      traffic: { timeouts: { request: "3s" } },
    }),
  ];
}

test("the controller with the rights of the chart does its work, and each of them is needed", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  await defineInferenceKinds(server);
  const before = (await readAudit(server)).length;
  const kubeconfig = await controllerKubeconfig(server, VALUES);
  const more = [...CHART_FLAGS, "--enable-inference", "--xds-mode", "tls", "--gateway-class-parameters-refs", REFS];
  const controller = await startController(context, server, await freePort(), { kubeconfig, more });
  const list = { apiVersion: "v1", kind: "List", items: manifests() };
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(list));
  const objects = ["deployment/one", "horizontalpodautoscaler/one", "daemonset/each", "poddisruptionbudget/each"];
  await eventually(() => server.kubectl(["get", ...objects]));
  await eventually(async () => {
    const items = JSON.parse(await server.kubectl(["get", KINDS_WITH_STATUS, "-o", "json"])) as { items: Reported[] };
    const silent = items.items.filter(({ status = {} }) => Object.keys(status).length === 0).map(({ kind }) => kind);
    assert.deepEqual(silent, []);
  });
  // Another class belongs to another controller, and everything that was deployed is withdrawn.
  const foreign = {
    apiVersion: GATEWAY,
    kind: "GatewayClass",
    metadata: { name: "other" },
    spec: { controllerName: "x.y/z" },
  };
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(foreign));
  for (const name of ["one", "each"])
    await server.kubectl(["patch", "gateway", name, "--type=merge", "-p", '{"spec":{"gatewayClassName":"other"}}']);
  const left = (): Promise<string> =>
    server.kubectl(["get", "deployments,daemonsets,hpa,pdb,secrets,configmaps", "-n", "default", "-o", "name"]);
  await eventually(async () => assert.doesNotMatch(await left(), /\/(?:one|each)/));
  await doRareWork(server, kubeconfig);
  await controller.kill("SIGTERM");
  assert.doesNotMatch(controller.output(), /forbidden|cannot be listed/);

  const rights = listRights(await renderChart(VALUES), "gwproxy");
  const needless = findNeedless(rights, (await readAudit(server)).slice(before), "gwproxy");
  assert.deepEqual(needless, [], "each right has a use");
  const page = await readFile(join(import.meta.dirname, "../../docs/operations.md"), "utf8");
  const unnamed = [...new Set(rights.map(({ resource }) => resource))].filter((name) => !page.includes(`\`${name}\``));
  assert.deepEqual(unnamed, [], "docs/operations.md says what each right is for");
});

test("the webhook with the rights of the chart registers itself, and each of them is needed", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const before = (await readAudit(server)).length;
  const rendered = await renderChart({}, ["--skip-tests"]);
  const kubeconfig = await installForAccount(server, rendered, "gwproxy-webhook");
  const port = await freePort();
  const configuration = "gwproxy-gwproxy-system-webhook";
  const flags = ["--namespace", "gwproxy-system", "--service", "gwproxy-system/gwproxy-webhook"];
  const chart = ["--configuration", configuration, "--deployment-name", "gwproxy-webhook"];
  const start = ["webhook", "-k", kubeconfig, "--address", `127.0.0.1:${port}`, ...flags, ...chart];
  const first = startGwproxy(context, start);
  await first.printed("validating");
  const bundle = ["get", "validatingwebhookconfiguration", configuration, "-o", "jsonpath={.webhooks[0].clientConfig}"];
  await eventually(async () => assert.match(await server.kubectl(bundle), /caBundle/));
  await first.kill("SIGTERM");
  // A Secret that was spoiled is written anew.
  const spoil = ["patch", "secret", "gwproxy-webhook-cert", "-n", "gwproxy-system", "--type=merge"];
  await server.kubectl([...spoil, "-p", JSON.stringify({ stringData: { "tls.crt": "spoilt" } })]);
  const second = startGwproxy(context, start);
  await second.printed("validating");
  const owners = ["get", "secret", "gwproxy-webhook-cert", "-n", "gwproxy-system", "-o", "jsonpath={.metadata}"];
  assert.match(await server.kubectl(owners), /"kind":"Deployment","name":"gwproxy-webhook"/);
  assert.doesNotMatch(first.output() + second.output(), /forbidden/);
  const rights = listRights(rendered, "gwproxy-webhook");
  assert.ok(rights.length > 4);
  assert.deepEqual(findNeedless(rights, (await readAudit(server)).slice(before), "gwproxy-webhook"), []);
});

/** Lists the rights without which no recorded request would have been refused. */
function findNeedless(rights: readonly Right[], audit: string, account: string): string[] {
  const requests = parseAuditLog(audit, account);
  assert.deepEqual(
    requests.filter(({ code }) => code === 403),
    [],
  );
  const needless = rights.filter((right) => {
    const others = rights.filter((each) => each !== right);
    return !requests.some((request) => isAllowed(request, rights) && !isAllowed(request, others));
  });
  return needless.map(describeRight);
}

interface Reported {
  readonly kind: string;
  readonly status?: object;
}

const REFS = JSON.stringify({ gwproxy: { name: "defaults", namespace: "default" } });

const KINDS_WITH_STATUS =
  "gatewayclass,gateway,httproute,grpcroute,tcproute,tlsroute,listenerset,backendtlspolicy,gwbackend,gwmodel,gwpolicy,inferencepool";

/** Kinds whose objects the status writer reads anew when somebody else wrote at the same time. */
const REREAD: readonly (readonly [kind: string, name: string])[] = [
  ["Gateway", "one"],
  ["GatewayClass", "gwproxy"],
  ["HTTPRoute", "http"],
  ["GRPCRoute", "grpc"],
  ["TCPRoute", "tcp"],
  ["TLSRoute", "tls"],
  ["ListenerSet", "more"],
  ["BackendTLSPolicy", "web"],
  ["GwBackend", "gone"],
  ["GwModel", "small"],
  ["GwPolicy", "patient"],
  ["InferencePool", "llama"],
];

/** Does with the controller's own parts, and its rights, what happens seldom: conflicts, rejections, tokens, key sets. */
async function doRareWork(server: ApiServer, kubeconfig: string): Promise<void> {
  const client = await createKubernetesClient(kubeconfig);
  const { log, lines } = recordingLog();
  const kinds = [...STANDARD_KINDS, ...OWN_KINDS, ...INFERENCE_KINDS];
  const statuses = createKubernetesStatusClient({ client, kinds, fieldManager: "c", current: () => undefined });
  for (const [kind, name] of REREAD) {
    const { group = "", namespaced } = kinds.find((each) => each.kind === kind) ?? {};
    const id = { group, kind, namespace: namespaced === true ? "default" : "", name };
    assert.ok((await statuses.read(id, true)) !== undefined, kind);
  }
  const token = (await server.kubectl(["create", "token", "default", "--audience=gwproxy"]).catch(() => "none")).trim();
  await reviewToken(client, token, "gwproxy");
  const events = createEventRecorder({ client, component: "test", log });
  const subject = { apiVersion: GATEWAY, kind: "Gateway", metadata: { name: "one", namespace: "default", uid: "1" } };
  for (let at = 0; at < 2; at++) events.warn(subject, "GwProxyNack", "port 80 is taken");
  const event = ["get", "events", "-o", "jsonpath={.items[*].count}"];
  await eventually(async () => assert.equal(await server.kubectl(event), "2"));
  const keys = createDocumentStore(client, { namespace: "gwproxy-system", fieldManager: "c", log });
  const document = { key: "abc", url: "https://keys.test/", tls: undefined, addresses: [], cacheMs: 1 };
  keys.save(document, { text: "{}", fetchedAtMs: 0 });
  const kept = ["get", "configmap", "-n", "gwproxy-system", "-o", "name"];
  await eventually(async () => assert.match(await server.kubectl(kept), /jwks-store-abc/));
  keys.remove("abc");
  await eventually(async () => assert.doesNotMatch(await server.kubectl(kept), /jwks-store-abc/));
  assert.deepEqual(lines, []);
  client.close();
}

async function readAudit(server: ApiServer): Promise<string> {
  return readFile(join(server.directory, AUDIT_LOG), "utf8").catch(() => "");
}

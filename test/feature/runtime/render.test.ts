/** `gwproxy render`: what the controller would apply, printed without a cluster. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";

const BIN = join(import.meta.dirname, "../../../bin/gwproxy.mjs");

const MANIFESTS = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: team}
spec:
  gatewayClassName: gwproxy
  infrastructure: {parametersRef: {group: gwproxy.dev, kind: GwParameters, name: edge}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwParameters
metadata: {name: edge, namespace: team}
spec: {deployment: {spec: {replicas: 2}}}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwParameters
metadata: {name: defaults, namespace: team}
spec: {podDisruptionBudget: {spec: {minAvailable: 1}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: theirs, namespace: team}
spec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}
`;

interface Printed {
  readonly kind: string;
  readonly metadata: { readonly annotations: Readonly<Record<string, string>>; readonly ownerReferences?: unknown };
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: {
      readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
      readonly spec: { readonly containers: readonly { readonly image: string }[] };
    };
  };
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function render(stdin: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [BIN, "render", "-f", "-", ...args],
      { env: { ...process.env, ...env } },
      (error, out, err) => resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err }),
    );
    child.stdin?.end(stdin);
  });
}

test("each Gateway of the controller is rendered in the order of apply, and what is secret is masked", async () => {
  const { code, out, err } = await render(MANIFESTS, []);
  assert.deepEqual([code, err], [0, ""]);
  const objects = parseAllDocuments(out).map((document) => document.toJS() as Printed);
  assert.deepEqual(
    objects.map(({ kind }) => kind),
    ["ServiceAccount", "ConfigMap", "ConfigMap", "Secret", "Service", "Deployment"],
  );
  const [secret, , deployment] = objects.slice(3);
  assert.deepEqual(secret?.stringData, { key: "<generated>" });
  assert.equal(deployment?.spec?.replicas, 2);
  const { annotations } = deployment.spec.template?.metadata ?? { annotations: {} };
  assert.deepEqual(
    [annotations["checksum/session-key"], annotations["checksum/xds-ca"]],
    ["<generated>", "<generated>"],
  );
  assert.match(annotations["checksum/config"] ?? "", /^[0-9a-f]{64}$/);
  assert.ok(objects.every(({ metadata }) => metadata.ownerReferences === undefined));
});

test("the controller's settings are flags and variables, and one Gateway can be chosen", async () => {
  const refs = '{"gwproxy": {"name": "defaults", "namespace": "team"}}';
  const args = [
    "-o",
    "json",
    "--gateway",
    "team/edge",
    "--xds-mode",
    "plaintext",
    "--gateway-class-parameters-refs",
    refs,
  ];
  const { code, out } = await render(MANIFESTS, args, { GWPROXY_PROXY_IMAGE_REGISTRY: "registry.example.com" });
  const { kind, items } = JSON.parse(out) as { kind: string; items: readonly Printed[] };
  assert.deepEqual([code, kind], [0, "List"]);
  assert.deepEqual(
    items.map((item) => item.kind),
    ["ServiceAccount", "ConfigMap", "Secret", "Service", "Deployment", "PodDisruptionBudget"],
  );
  assert.match(items[4]?.spec?.template?.spec.containers[0]?.image ?? "", /^registry\.example\.com\/proxy:/);
});

test("what the status of a Gateway would say goes to stderr, and the exit code is 1", async () => {
  const broken = MANIFESTS.replace("replicas: 2", "replicas: two");
  const { code, out, err } = await render(broken, []);
  assert.deepEqual([code, out], [1, ""]);
  const text =
    "Gateway team/edge: not accepted (InvalidParameters): GwParameters team/edge spec.deployment.spec.replicas: must be a number\n";
  assert.equal(err, text);
  const missing = await render(MANIFESTS, ["--gateway", "team/none"]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /Gateway team\/none is not in the manifests; these are: team\/edge/);
  assert.equal((await render("{", [])).code, 1);
});

test("the manifests of docs/parameters.md are rendered", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/parameters.md"), "utf8");
  const [, manifests = ""] = /^```yaml\n(.*?)^```/ms.exec(page) ?? [];
  const { code, out, err } = await render(manifests, ["-o", "json"]);
  assert.deepEqual([code, err], [0, ""]);
  const { items } = JSON.parse(out) as { items: readonly Printed[] };
  assert.ok(items.some(({ kind }) => kind === "PodDisruptionBudget"));
  assert.equal(items.find(({ kind }) => kind === "Deployment")?.spec?.replicas, 3);
});

/** Each field of GwParameters in the objects that a deployer applies, from the Gateway, from its class, and from both. */
import assert from "node:assert/strict";
import { parse } from "yaml";
import type { GwParametersSpec } from "../../../generated/types/parameters.ts";
import { deploy, type AppliedObject, type Deployed } from "../../support/kubernetes/deployed.ts";
import { prove } from "../../support/proofs/prove.ts";

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly volumes: readonly { readonly name: string; readonly [source: string]: unknown }[];
  readonly containers: readonly Container[];
}

interface Container {
  readonly image: string;
  readonly imagePullPolicy?: string;
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly resources: unknown;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

function find({ objects, error }: Deployed, kind: string): AppliedObject {
  const found = objects.find((object) => object.kind === kind);
  assert.ok(found !== undefined, `no ${kind} was applied; ${error ?? "the Gateway is accepted"}`);
  return found;
}

function podOf(deployed: Deployed, kind = "Deployment"): PodSpec {
  const { template } = find(deployed, kind).spec as { readonly template: { readonly spec: PodSpec } }; // a workload
  return template.spec;
}

function containerOf(deployed: Deployed): Container {
  const [container] = podOf(deployed).containers;
  assert.ok(container !== undefined);
  return container;
}

function variable(deployed: Deployed, name: string): unknown {
  const found = containerOf(deployed).env.find((one) => one.name === name);
  return found?.value ?? found?.valueFrom;
}

function config(deployed: Deployed): unknown {
  const map = deployed.objects.find(({ data }) => data?.["config.yaml"] !== undefined);
  return (parse(map?.data?.["config.yaml"] ?? "") as { readonly config: unknown } | null)?.config; // our own file
}

interface Row {
  readonly fields: readonly string[];
  readonly name: string;
  readonly gateway?: GwParametersSpec;
  readonly class?: GwParametersSpec;
  readonly read: (deployed: Deployed) => unknown;
  readonly expected: unknown;
}

const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;

const ROWS: readonly Row[] = [
  {
    fields: ["workload.kind"],
    name: "a DaemonSet takes the place of the Deployment",
    gateway: { workload: { kind: "DaemonSet" } },
    read: ({ objects }) => objects.map(({ kind }) => kind).filter((kind) => kind.startsWith("D")),
    expected: ["DaemonSet"],
  },
  {
    fields: ["logging.level"],
    name: "the level of the log is a variable",
    class: { logging: { level: "debug" } },
    read: (deployed) => variable(deployed, "LOG_LEVEL"),
    expected: "debug",
  },
  {
    fields: ["logging.format", "rawConfig"],
    name: "settings of the data plane are in its file, and typed fields win over them",
    class: { logging: { format: "json" } },
    gateway: { rawConfig: { config: { workers: 2, logging: { format: "text" } } } },
    read: config,
    expected: { workers: 2, logging: { format: "json" } },
  },
  {
    fields: ["image.registry", "image.repository", "image.tag", "image.digest", "image.pullPolicy"],
    name: "the image is put together from both levels",
    class: { image: { registry: "registry.example.com", repository: "fork", tag: "0", pullPolicy: "Never" } },
    gateway: { image: { tag: "2.0.0", digest: DIGEST } },
    read: (deployed) => [containerOf(deployed).image, containerOf(deployed).imagePullPolicy],
    expected: [`registry.example.com/fork:2.0.0@${DIGEST}`, "Never"],
  },
  {
    fields: ["env[].name", "env[].value"],
    name: "variables replace those of the class and generated ones",
    class: {
      env: [
        { name: "A", value: "class" },
        { name: "B", value: "class" },
      ],
    },
    gateway: {
      env: [
        { name: "A", value: "gateway" },
        { name: "LOG_LEVEL", value: "trace" },
      ],
    },
    read: (deployed) => containerOf(deployed).env.filter(({ name }) => /^(A|B|LOG_LEVEL)$/.test(name)),
    expected: [
      { name: "B", value: "class" },
      { name: "A", value: "gateway" },
      { name: "LOG_LEVEL", value: "trace" },
    ],
  },
  {
    fields: ["fieldRef.apiVersion", "fieldRef.fieldPath"].map((field) => `env[].valueFrom.${field}`),
    name: "a variable is read from a field of the pod",
    gateway: { env: [{ name: "X", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIP" } } }] },
    read: (deployed) => variable(deployed, "X"),
    expected: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIP" } },
  },
  {
    fields: ["containerName", "resource", "divisor"].map((field) => `env[].valueFrom.resourceFieldRef.${field}`),
    name: "a variable is read from a limit",
    gateway: {
      env: [
        {
          name: "X",
          valueFrom: { resourceFieldRef: { containerName: "c", resource: "limits.memory", divisor: "1Mi" } },
        },
      ],
    },
    read: (deployed) => variable(deployed, "X"),
    expected: { resourceFieldRef: { containerName: "c", resource: "limits.memory", divisor: "1Mi" } },
  },
  ...(["configMapKeyRef", "secretKeyRef"] as const).map((source): Row => {
    return {
      fields: ["name", "key", "optional"].map((field) => `env[].valueFrom.${source}.${field}`),
      name: `a variable is read from an entry (${source})`,
      gateway: { env: [{ name: "X", valueFrom: { [source]: { name: "map", key: "entry", optional: true } } }] },
      read: (deployed) => variable(deployed, "X"),
      expected: { [source]: { name: "map", key: "entry", optional: true } },
    };
  }),
  {
    fields: ["resources.limits", "resources.requests", "resources.claims[].name", "resources.claims[].request"],
    name: "resources are merged by name, over what pods request by default",
    class: { resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "200m" } } },
    gateway: { resources: { limits: { memory: "2Gi" }, claims: [{ name: "device", request: "one" }] } },
    read: (deployed) => containerOf(deployed).resources,
    expected: {
      limits: { cpu: "2", memory: "2Gi" },
      requests: { cpu: "200m", memory: "128Mi" },
      claims: [{ name: "device", request: "one" }],
    },
  },
  {
    fields: ["shutdown.min", "shutdown.max"],
    name: "pods and their data plane know how long they may take to stop",
    class: { shutdown: { min: 1, max: 2 } },
    gateway: { shutdown: { min: 15, max: 90 } },
    read: (deployed) => [
      podOf(deployed).terminationGracePeriodSeconds,
      variable(deployed, "TERMINATION_GRACE_PERIOD_SECONDS"),
      variable(deployed, "CONNECTION_MIN_TERMINATION_DEADLINE"),
    ],
    expected: [90, "90", "15s"],
  },
  {
    fields: ["caAddress", "trustDomain", "additionalTrustDomains[]", "clusterId", "network"].map((f) => `mesh.${f}`),
    name: "a mesh is described by variables of the pod",
    class: {
      mesh: { caAddress: "https://ca.example.org:15012", clusterId: "east", additionalTrustDomains: ["a.org"] },
    },
    gateway: {
      mesh: { trustDomain: "example.org", clusterId: "west", network: "n1", additionalTrustDomains: ["b.org"] },
    },
    read: (deployed) =>
      ["CA_ADDRESS", "TRUST_DOMAIN", "ADDITIONAL_TRUST_DOMAINS", "CLUSTER_ID", "NETWORK"].map((name) =>
        variable(deployed, name),
      ),
    expected: ["https://ca.example.org:15012", "example.org", "b.org", "west", "n1"],
  },
  {
    fields: ["mesh.enabled"],
    name: "a Gateway leaves the mesh of its class",
    class: { mesh: { clusterId: "east" } },
    gateway: { mesh: { enabled: false } },
    read: (deployed) => variable(deployed, "CLUSTER_ID"),
    expected: undefined,
  },
  {
    fields: ["hostPath.path", "mountPath", "socketName"].map((field) => `spiffe.source.${field}`),
    name: "the socket of workload identities comes from a folder of the node",
    gateway: { spiffe: { source: { hostPath: { path: "/run/spire" }, mountPath: "/spire", socketName: "api.sock" } } },
    read: (deployed) => [podOf(deployed).volumes.at(-1), containerOf(deployed).volumeMounts.at(-1), config(deployed)],
    expected: [
      { name: "spiffe-workload-api", hostPath: { path: "/run/spire", type: "Directory" } },
      { name: "spiffe-workload-api", mountPath: "/spire", readOnly: true },
      { spiffe: { endpoint: "unix:///spire/api.sock" } },
    ],
  },
  {
    fields: ["spiffe.source.csi.driver"],
    name: "the socket of workload identities comes from a driver",
    gateway: { spiffe: { source: { csi: { driver: "csi.example.org" } } } },
    read: (deployed) => podOf(deployed).volumes.at(-1),
    expected: { name: "spiffe-workload-api", csi: { driver: "csi.example.org", readOnly: true } },
  },
  {
    fields: ["spiffe.enabled"],
    name: "a Gateway switches off the workload identities of its class",
    class: { spiffe: {} },
    gateway: { spiffe: { enabled: false } },
    read: (deployed) => podOf(deployed).volumes.some(({ name }) => name === "spiffe-workload-api"),
    expected: false,
  },
  ...(
    [
      ["deployment", "Deployment", { replicas: 3 }, {}],
      ["daemonSet", "DaemonSet", { minReadySeconds: 3 }, { workload: { kind: "DaemonSet" } }],
      ["service", "Service", { type: "ClusterIP" }, {}],
      ["podDisruptionBudget", "PodDisruptionBudget", { minAvailable: 1 }, {}],
      ["horizontalPodAutoscaler", "HorizontalPodAutoscaler", { maxReplicas: 9 }, {}],
    ] as const
  ).map(([field, kind, spec, more]): Row => {
    const [member = ""] = Object.keys(spec);
    return {
      fields: ["metadata.labels", "metadata.annotations", "spec"].map((part) => `${field}.${part}`),
      name: `an overlay changes the ${kind}`,
      class: { ...more, [field]: { metadata: { labels: { tier: "class" } } } },
      gateway: { ...more, [field]: { metadata: { labels: { tier: "edge" }, annotations: { note: "x" } }, spec } },
      read: (deployed) => {
        const { metadata, spec: changed } = find(deployed, kind);
        return [metadata.labels?.["tier"], metadata.annotations?.["note"], changed?.[member]];
      },
      expected: ["edge", "x", Object.values(spec)[0]],
    };
  }),
  {
    fields: ["serviceAccount.metadata.labels", "serviceAccount.metadata.annotations"],
    name: "an overlay changes the ServiceAccount",
    gateway: { serviceAccount: { metadata: { labels: { tier: "edge" }, annotations: { "cloud/role": "edge" } } } },
    read: (deployed) => {
      const { labels, annotations } = find(deployed, "ServiceAccount").metadata;
      return [labels?.["tier"], annotations?.["cloud/role"]];
    },
    expected: ["edge", "edge"],
  },
  {
    fields: ["serviceAccount.spec"],
    name: "a spec of a ServiceAccount, which has none, is refused",
    gateway: { serviceAccount: { spec: { automountServiceAccountToken: true } } },
    read: ({ error }) => error,
    expected:
      "GwParameters team/edge spec.serviceAccount.spec: a ServiceAccount has no spec; set labels and annotations",
  },
];

for (const { fields, name, read, expected, ...levels } of ROWS) {
  prove(
    fields.map((field) => `GwParameters spec.${field}`),
    name,
    async (context) => assert.deepEqual(read(await deploy(context, levels)), expected),
  );
}

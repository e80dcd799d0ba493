/**
 * Overlays next to a strategic merge patch by a real API server, which is what `kubectl patch --type=strategic` sends:
 * the types that they are merged by, and what comes of the same patch on the same object.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import {
  OVERLAY_TYPES,
  overlayTypes,
  printOverlayTypes,
  ROOTS,
  type OpenApi,
} from "../../codegen/tools/overlay-types.ts";
import type { Overlay } from "../../generated/types/parameters.ts";
import { applyOverlays } from "../../src/deployer/overlays.ts";
import type { Manifest } from "../../src/deployer/objects/context.ts";
import { ApiError } from "../../src/sources/kubernetes/api-error.ts";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { findParametersErrors } from "../../src/translator/parameters/check.ts";
import type { OverlayName } from "../../src/translator/parameters/overlays.ts";
import { renderedObjects } from "../support/fixtures/rendered-objects.ts";
import { assertProperty } from "../support/fixtures/seed.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

let server: ApiServer;
let client: KubernetesClient;
const bases = new Map<string, Manifest>();

const KINDS: Readonly<Record<OverlayName, { readonly kind: string; readonly path: string }>> = {
  deployment: { kind: "Deployment", path: "/apis/apps/v1/namespaces/default/deployments" },
  daemonSet: { kind: "DaemonSet", path: "/apis/apps/v1/namespaces/default/daemonsets" },
  service: { kind: "Service", path: "/api/v1/namespaces/default/services" },
  serviceAccount: { kind: "ServiceAccount", path: "/api/v1/namespaces/default/serviceaccounts" },
  podDisruptionBudget: { kind: "PodDisruptionBudget", path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets" },
  horizontalPodAutoscaler: {
    kind: "HorizontalPodAutoscaler",
    path: "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
  },
};

before(async () => {
  server = await startApiServer();
  client = await createKubernetesClient(server.kubeconfig);
  const scaled = { horizontalPodAutoscaler: { spec: { maxReplicas: 3 } }, podDisruptionBudget: {} };
  const objects = [...renderedObjects(scaled), ...renderedObjects({ workload: { kind: "DaemonSet" } })];
  for (const { kind, path } of Object.values(KINDS)) {
    const object = objects.find((one) => one.kind === kind);
    assert.ok(object !== undefined);
    bases.set(kind, object);
    await client.request({ method: "POST", path, body: object });
  }
});

after(async () => {
  client.close();
  await server.stop();
});

test("the types are those that the API server publishes", async () => {
  const documents = new Map<string, OpenApi>();
  for (const path of Object.keys(ROOTS))
    documents.set(path, JSON.parse(await server.kubectl(["get", "--raw", `/openapi/v3/${path}`])) as OpenApi);
  const committed = readFileSync(join(import.meta.dirname, "../..", OVERLAY_TYPES), "utf8");
  const printed = printOverlayTypes(overlayTypes(Object.fromEntries(documents)), "VERSION");
  assert.equal(committed.replace(/(?<=Kubernetes )v[\d.]+(?=\. )/, "VERSION"), printed);
});

/** What the server makes of an object, or "refused". */
type Stored = StoredObject | "refused";

interface StoredObject {
  readonly labels: unknown;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: { readonly ports?: readonly object[] } & Readonly<Record<string, unknown>>;
}

async function stored(answer: Promise<unknown>): Promise<Stored> {
  try {
    // The object that was sent, which may be one without a spec.
    const { metadata, spec = {} } = (await answer) as Manifest & { readonly spec?: StoredObject["spec"] };
    return { labels: metadata.labels, annotations: metadata.annotations, spec };
  } catch (error) {
    // 400 and 422: the patch or its result is not valid. Anything else is a fault of the test.
    if (error instanceof ApiError && (error.status === 400 || error.status === 422)) return "refused";
    throw error;
  }
}

async function compare(name: OverlayName, overlay: Overlay): Promise<readonly [ours: Stored, theirs: Stored]> {
  const { kind, path } = KINDS[name];
  const base = bases.get(kind);
  assert.ok(base !== undefined);
  assert.deepEqual(findParametersErrors({ [name]: overlay }), []);
  const query = { dryRun: "All" };
  const object = `${path}/${base.metadata.name}`;
  const contentType = "application/strategic-merge-patch+json";
  const theirs = await stored(client.request({ method: "PATCH", path: object, query, contentType, body: overlay }));
  const { metadata, ...merged } = applyOverlays(base, [overlay]);
  const copy = { ...merged, metadata: { ...metadata, name: "copy", namespace: "default" } };
  return [
    withoutAssigned(await stored(client.request({ method: "POST", path, query, body: copy }))),
    withoutAssigned(theirs),
  ];
}

/** Leaves out what the server assigns to each object anew. */
function withoutAssigned(object: Stored): Stored {
  if (object === "refused") return object;
  const { "deprecated.daemonset.template.generation": _generation, ...annotations } = object.annotations;
  const { clusterIP: _ip, clusterIPs: _ips, healthCheckNodePort: _port, ports, ...spec } = object.spec;
  const own = ports?.map((port) => ({ ...port, nodePort: 0 }));
  return { ...object, annotations, spec: { ...spec, ...(own === undefined ? {} : { ports: own }) } };
}

const pod = (spec: object): Overlay => ({ spec: { template: { spec } } });
const container = (members: object): Overlay => pod({ containers: [{ name: "gwproxy", ...members }] });

const CASES: readonly (readonly [title: string, name: OverlayName, overlay: Overlay])[] = [
  [
    "labels and annotations",
    "deployment",
    { metadata: { labels: { a: "b", "app.kubernetes.io/managed-by": "x" }, annotations: { c: "d" } } },
  ],
  ["labels of an account", "serviceAccount", { metadata: { labels: { a: "b" }, annotations: { "cloud/role": "x" } } }],
  ["a scalar", "deployment", { spec: { replicas: 3, minReadySeconds: 5 } }],
  ["a map", "deployment", pod({ nodeSelector: { pool: "edge" }, hostNetwork: false })],
  [
    "a container that is merged by name",
    "deployment",
    container({ image: "other", imagePullPolicy: "Never", tty: true }),
  ],
  [
    "a container that is new",
    "deployment",
    pod({ containers: [{ name: "sidecar", image: "busybox", ports: [{ containerPort: 9 }] }] }),
  ],
  [
    "a container that is renamed adds one, which is refused without an image",
    "deployment",
    pod({ containers: [{ name: "proxy" }] }),
  ],
  [
    "variables by name",
    "deployment",
    container({
      env: [
        { name: "LOG_LEVEL", value: "debug" },
        { name: "NEW", value: "1" },
      ],
    }),
  ],
  ["a variable that is deleted", "deployment", container({ env: [{ name: "NODE_ZONE", $patch: "delete" }] })],
  [
    "another source of a variable",
    "deployment",
    container({ env: [{ name: "NODE_NAME", value: "x", valueFrom: null }] }),
  ],
  [
    "mounts by path",
    "deployment",
    container({
      volumeMounts: [
        { mountPath: "/tmp", name: "tmp", readOnly: false },
        { mountPath: "/extra", name: "tmp" },
      ],
    }),
  ],
  [
    "ports by number",
    "deployment",
    container({ ports: [{ containerPort: 15_020, name: "stats" }, { containerPort: 8080 }] }),
  ],
  [
    "a volume of another source",
    "deployment",
    pod({ volumes: [{ name: "tmp", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] }),
  ],
  ["a volume of two sources is refused", "deployment", pod({ volumes: [{ name: "tmp", hostPath: { path: "/x" } }] })],
  [
    "a volume that is deleted is missed by its mount",
    "deployment",
    pod({ volumes: [{ name: "tmp", $patch: "delete" }] }),
  ],
  [
    "tolerations as a whole",
    "deployment",
    pod({
      tolerations: [
        { key: "a", operator: "Exists" },
        { key: "a", operator: "Exists", effect: "NoExecute" },
      ],
    }),
  ],
  [
    "spread constraints by key",
    "deployment",
    pod({ topologySpreadConstraints: [{ topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 1 }] }),
  ],
  [
    "host aliases, pull secrets and init containers",
    "deployment",
    pod({
      hostAliases: [{ ip: "192.0.2.1", hostnames: ["a"] }],
      imagePullSecrets: [{ name: "s" }],
      initContainers: [{ name: "i", image: "i" }],
    }),
  ],
  ["$patch: delete in a map", "deployment", pod({ securityContext: { $patch: "delete" } })],
  ["$patch: delete below a container", "deployment", container({ resources: { $patch: "delete" } })],
  ["$patch: replace in a map", "deployment", container({ securityContext: { $patch: "replace", runAsUser: 1 } })],
  [
    "$patch: replace in a list",
    "deployment",
    container({ env: [{ $patch: "replace" }, { name: "ONLY", value: "1" }] }),
  ],
  ["$retainKeys of a strategy", "deployment", { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } }],
  [
    "$setElementOrder",
    "deployment",
    container({
      "$setElementOrder/env": [{ name: "POD_NAME" }, { name: "NODE_NAME" }, { name: "FIRST" }],
      env: [{ name: "FIRST", value: "1" }],
    }),
  ],
  ["$deleteFromPrimitiveList", "deployment", container({ "$deleteFromPrimitiveList/args": ["-f"] })],
  [
    "null in a map, in an object and where nothing is",
    "deployment",
    {
      spec: {
        replicas: null,
        template: {
          spec: { terminationGracePeriodSeconds: null, securityContext: { sysctls: null }, nodeSelector: { a: null } },
        },
      },
    },
  ],
  [
    "arguments as a whole",
    "deployment",
    container({ args: ["-f", "/config/config.yaml", "--workers", "1"], command: ["x"] }),
  ],
  ["resources", "deployment", container({ resources: { limits: { memory: "1Gi" }, requests: { cpu: "50m" } } })],
  [
    "affinity",
    "deployment",
    pod({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] }],
          },
        },
      },
    }),
  ],
  ["a selector that no pod has is refused", "deployment", { spec: { selector: { matchLabels: { other: "x" } } } }],
  [
    "the strategy of a DaemonSet",
    "daemonSet",
    {
      spec: {
        updateStrategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: "10%" } },
        template: { spec: { priorityClassName: "system-node-critical" } },
      },
    },
  ],
  [
    "ports of a Service by port",
    "service",
    {
      spec: {
        ports: [
          { port: 443, name: "https", appProtocol: "https" },
          { port: 8443, targetPort: "x", name: "new" },
        ],
      },
    },
  ],
  [
    "a port of a Service that is deleted",
    "service",
    { spec: { ports: [{ port: 80, $patch: "delete" }], type: "ClusterIP" } },
  ],
  [
    "families and policies of a Service",
    "service",
    {
      spec: {
        ipFamilyPolicy: "PreferDualStack",
        externalTrafficPolicy: "Local",
        sessionAffinity: "ClientIP",
        loadBalancerSourceRanges: ["10.0.0.0/8"],
      },
    },
  ],
  ["a selector of a Service", "service", { spec: { selector: { "app.kubernetes.io/instance": null, extra: "x" } } }],
  ["a budget", "podDisruptionBudget", { spec: { maxUnavailable: "50%", unhealthyPodEvictionPolicy: "AlwaysAllow" } }],
  [
    "the selector of a budget is replaced",
    "podDisruptionBudget",
    { spec: { minAvailable: 1, selector: { matchLabels: { only: "x" } } } },
  ],
  [
    "metrics and behaviour of an autoscaler",
    "horizontalPodAutoscaler",
    {
      spec: {
        minReplicas: 2,
        maxReplicas: 9,
        metrics: [
          { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 60 } } },
        ],
        behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
      },
    },
  ],
];

for (const [title, name, overlay] of CASES) {
  test(`${title} (${name}) as the API server patches it`, async () => {
    const [ours, theirs] = await compare(name, overlay);
    assert.deepEqual(ours, theirs);
    assert.equal(theirs === "refused", /refused|missed/.test(title));
  });
}

const NAMES = ["gwproxy", "a", "b"];
const named = (members: Readonly<Record<string, fc.Arbitrary<unknown>>>, names = NAMES) =>
  fc.record({ name: fc.constantFrom(...names), ...members }, { requiredKeys: ["name"] });
const env = named({ value: fc.option(fc.string({ maxLength: 3 })), $patch: fc.constant("delete") }, [
  "LOG_LEVEL",
  "POD_NAME",
  "X",
]);
const unique = <T extends { readonly name: string }>(items: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> =>
  fc.uniqueArray(items, { maxLength: 3, selector: ({ name }) => name });
const containers = unique(
  named({
    // A tag, because the server derives how it is pulled when the object is made.
    image: fc.constantFrom("x:1", "y:1"),
    args: fc.option(fc.array(fc.constantFrom("-a", "-b"), { maxLength: 2 })),
    env: unique(env),
    resources: fc.option(
      fc.record(
        { limits: fc.option(fc.constant({ cpu: "1" })), $patch: fc.constantFrom("replace", "delete") },
        { requiredKeys: [] },
      ),
    ),
  }),
);
const randomPod = fc.record(
  {
    containers,
    nodeSelector: fc.dictionary(fc.constantFrom("a", "b"), fc.option(fc.constantFrom("x", "y"))),
    tolerations: fc.array(fc.constantFrom({ key: "a", operator: "Exists" }, { operator: "Exists" }), { maxLength: 2 }),
    volumes: unique(
      named({ emptyDir: fc.constant({ medium: "Memory" }), $patch: fc.constant("delete") }, ["tmp", "v", "w"]),
    ),
    terminationGracePeriodSeconds: fc.option(fc.constantFrom(1, 2)),
  },
  { requiredKeys: [] },
);

test("patches at random come out as the API server's", async () => {
  await assertProperty(
    fc.asyncProperty(randomPod, async (spec) => {
      const [ours, theirs] = await compare("deployment", pod(spec));
      assert.deepEqual(ours, theirs);
    }),
    { numRuns: 150 },
  );
});

test("an API server takes what `gwproxy render` prints", async () => {
  const manifests = join(import.meta.dirname, "../../examples/quickstart");
  const bin = join(import.meta.dirname, "../../bin/gwproxy.mjs");
  const { stdout } = await promisify(execFile)(process.execPath, [bin, "render", "-f", manifests]);
  const dryRun = await server.kubectl(["apply", "--dry-run=server", "-f", "-"], stdout);
  assert.match(dryRun, /deployment\.apps\/quickstart created \(server dry run\)/);
});

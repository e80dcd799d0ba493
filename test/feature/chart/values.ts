/**
 * Every value of the chart gwproxy with the change that it makes in the rendered objects, and values that are refused.
 * chart.test.ts renders the rows of a batch together.
 */
import type { ChartObject } from "../../support/kubernetes/chart.ts";

export interface Row {
  /** Path of the value, with dots. */
  readonly path: string;
  readonly value: unknown;
  /** Reads the part of the objects that the value changes. */
  readonly look: (objects: readonly ChartObject[]) => unknown;
  readonly makes: unknown;
}

export interface Batch {
  readonly title: string;
  /** Values without which those of the rows have no effect. */
  readonly base?: object;
  readonly rows: readonly Row[];
}

type Look = Row["look"];

/** Reads a path of one object: "/" separates members, "key=x" is an item of a list, and "~" stands for a "/" in a name. */
function at(kind: string, name: string, path: string): Look {
  return (objects) => {
    const object = objects.find((each) => each.kind === kind && each.metadata.name === name);
    return path.split("/").reduce<unknown>(readMember, object);
  };
}

function readMember(value: unknown, member: string): unknown {
  if (Array.isArray(value)) {
    const [key = "", wanted] = member.split("=");
    return value.find((item: Readonly<Record<string, unknown>>) => item[key] === wanted) as unknown;
  }
  // metadata and spec are nested maps
  return (value as Readonly<Record<string, unknown>> | undefined)?.[member.replaceAll("~", "/")];
}

const deployment = (path: string): Look => at("Deployment", "gwproxy", `spec/${path}`);
const pod = (path: string): Look => deployment(`template/spec/${path}`);
const container = (path: string): Look => pod(`containers/name=controller/${path}`);
const service = (path: string): Look => at("Service", "gwproxy", `spec/${path}`);
const hook = (path: string): Look => at("Deployment", "gwproxy-webhook", `spec/${path}`);
const hookContainer = (path: string): Look => hook(`template/spec/containers/name=webhook/${path}`);
const validation = (path: string): Look =>
  at("ValidatingWebhookConfiguration", "gwproxy-gwproxy-system-webhook", `webhooks/name=validate.gwproxy.dev/${path}`);

/** Reads a variable of the controller. */
const variable = (name: string): Look => container(`env/name=${name}/value`);

/** Lists the objects of a kind by name. */
const names =
  (kind: string): Look =>
  (objects) =>
    objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);

/** Reads the rules of the controller's ClusterRole for a group. */
const ruleOf =
  (group: string, resource: string): Look =>
  (objects) => {
    const role = at("ClusterRole", "gwproxy-gwproxy-system", "rules")(objects) as readonly Rule[]; // as the chart has it
    return role.find(({ apiGroups, resources }) => apiGroups[0] === group && resources.includes(resource))?.verbs;
  };

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

function row(path: string, value: unknown, look: Look, makes: unknown = value): Row {
  return { path, value, look, makes };
}

const SECRETS = [{ name: "registry" }];
const BUDGET = { minAvailable: 1 };
const LABELS = { team: "edge" };
const SELECTOR = { matchLabels: LABELS };

const POD_ROWS: readonly Row[] = [
  row("controller.replicaCount", 3, deployment("replicas")),
  row("controller.revisionHistoryLimit", 0, deployment("revisionHistoryLimit")),
  row("controller.logLevel", "debug", variable("GWPROXY_LOG_LEVEL")),
  row("controller.image.registry", "own.example.com", container("image"), "own.example.com/steering:v9.9.9"),
  row("controller.image.repository", "steering", container("image"), "own.example.com/steering:v9.9.9"),
  row("controller.image.tag", "9.9.9", hookContainer("image"), "own.example.com/steering:v9.9.9"),
  row("controller.image.pullPolicy", "Never", container("imagePullPolicy")),
  row("controller.extraEnv", { B: 2, A: { value: true }, GWPROXY_XDS_MODE: "either" }, variable("A"), "true"),
  row("controller.extraVolumes", [{ name: "ca", emptyDir: {} }], pod("volumes")),
  row("controller.extraVolumeMounts", [{ name: "ca", mountPath: "/ca" }], container("volumeMounts")),
  row("controller.extraContainers", [{ name: "side", image: "side" }], pod("containers/name=side"), {
    name: "side",
    image: "side",
  }),
  row("controller.podDisruptionBudget", BUDGET, at("PodDisruptionBudget", "gwproxy", "spec/minAvailable"), 1),
  row(
    "controller.verticalPodAutoscaler",
    { updatePolicy: { updateMode: "Off" } },
    vpa("updatePolicy/updateMode"),
    "Off",
  ),
  row("controller.strategy", { type: "Recreate" }, deployment("strategy")),
  row("controller.priorityClassName", "system-cluster-critical", pod("priorityClassName")),
  row("controller.xds.mode", "plaintext", variable("GWPROXY_XDS_MODE"), "either"),
  row("image.tag", "canary", variable("GWPROXY_PROXY_IMAGE_TAG")),
  row("image.pullPolicy", "Always", testPod("containers/name=client/imagePullPolicy"), "Never"),
  row("proxy.image.registry", "planes.example.com", variable("GWPROXY_PROXY_IMAGE_REGISTRY")),
  row("proxy.image.repository", "plane", variable("GWPROXY_PROXY_IMAGE_REPOSITORY")),
  row("proxy.imagePullSecrets", [{ name: "planes" }], variable("GWPROXY_PROXY_IMAGE_PULL_SECRETS"), '["planes"]'),
  row(
    "proxy.ambientIdentityHosts",
    ["a.test", "*.b.test"],
    variable("GWPROXY_AMBIENT_IDENTITY_HOSTS"),
    "a.test,*.b.test",
  ),
  row("imagePullSecrets", SECRETS, pod("imagePullSecrets")),
  row("tolerations", [{ key: "edge", operator: "Exists" }], pod("tolerations")),
  row("affinity", { nodeAffinity: { x: 1 } }, pod("affinity")),
  row("nodeSelector", LABELS, hook("template/spec/nodeSelector")),
  row("dnsConfig", { options: [{ name: "ndots", value: "1" }] }, pod("dnsConfig")),
  row("podSecurityContext", { fsGroup: 7 }, pod("securityContext")),
  row("securityContext", { runAsUser: 7 }, hookContainer("securityContext")),
  row("commonLabels", { owner: "me" }, at("ClusterRole", "gwproxy-gwproxy-system", "metadata/labels/owner"), "me"),
  row("deploymentAnnotations", { note: "one" }, at("Deployment", "gwproxy", "metadata/annotations"), { note: "one" }),
  row("podAnnotations", { note: "two" }, deployment("template/metadata/annotations/note"), "two"),
  row("podLabels", { gwproxy: "no", tier: "one" }, deployment("template/metadata/labels/tier"), "one"),
  row("resources", { limits: { memory: "1Gi" } }, variable("NODE_OPTIONS"), "--max-old-space-size=768"),
];

function vpa(path: string): Look {
  return at("VerticalPodAutoscaler", "gwproxy", `spec/${path}`);
}

function testPod(path: string): Look {
  return at("Pod", "gwproxy-test-client", `spec/${path}`);
}

const SERVICE_ROWS: readonly Row[] = [
  row("controller.service.type", "LoadBalancer", service("type")),
  row("controller.service.ports.agwGrpc", 19978, variable("GWPROXY_XDS_SERVICE_PORT"), "19978"),
  row("controller.service.ports.health", 19093, container("ports/name=health/containerPort")),
  row(
    "controller.service.ports.metrics",
    19092,
    deployment("template/metadata/annotations/prometheus.io~port"),
    "19092",
  ),
  row("controller.service.annotations", { note: "svc" }, at("Service", "gwproxy", "metadata/annotations/note"), "svc"),
  row("controller.service.extraLabels", { tier: "svc" }, at("Service", "gwproxy", "metadata/labels/tier"), "svc"),
  row(
    "controller.service.sessionAffinityConfig",
    { clientIP: { timeoutSeconds: 5 } },
    service("sessionAffinityConfig"),
  ),
  row("controller.service.clusterIPs", ["10.0.0.7"], service("clusterIPs")),
  row("controller.service.externalIPs", ["192.0.2.7"], service("externalIPs")),
  row("controller.service.ipFamilies", ["IPv6"], service("ipFamilies")),
  row("controller.service.loadBalancerSourceRanges", ["192.0.2.0/24"], service("loadBalancerSourceRanges")),
  row("controller.service.clusterIP", "10.0.0.7", service("clusterIP")),
  row("controller.service.externalName", "x.example.com", service("externalName")),
  row("controller.service.externalTrafficPolicy", "Local", service("externalTrafficPolicy")),
  row("controller.service.internalTrafficPolicy", "Local", service("internalTrafficPolicy")),
  row("controller.service.ipFamilyPolicy", "RequireDualStack", service("ipFamilyPolicy")),
  row("controller.service.loadBalancerClass", "own", service("loadBalancerClass")),
  row("controller.service.loadBalancerIP", "192.0.2.8", service("loadBalancerIP")),
  row("controller.service.sessionAffinity", "ClientIP", service("sessionAffinity")),
  row("controller.service.trafficDistribution", "PreferClose", service("trafficDistribution")),
  row("controller.service.healthCheckNodePort", 0, service("healthCheckNodePort")),
  row("controller.service.allocateLoadBalancerNodePorts", false, service("allocateLoadBalancerNodePorts")),
  row("controller.service.publishNotReadyAddresses", true, service("publishNotReadyAddresses")),
];

const CLASS_ROWS: readonly Row[] = [
  row("gatewayClassName", "edge", names("GatewayClass"), ["edge"]),
  row("controllerName", "example.com/edge", at("GatewayClass", "edge", "spec/controllerName")),
  row(
    "gatewayClassParametersRefs",
    { edge: { name: "a", namespace: "b" } },
    at("GatewayClass", "edge", "spec/parametersRef"),
    {
      group: "gwproxy.dev",
      kind: "GwParameters",
      name: "a",
      namespace: "b",
    },
  ),
  row(
    "discoveryNamespaceSelectors",
    [SELECTOR],
    variable("GWPROXY_DISCOVERY_NAMESPACE_SELECTORS"),
    JSON.stringify([SELECTOR]),
  ),
  row("inferenceExtension.enabled", true, ruleOf("inference.networking.k8s.io", "inferencepools"), [
    "get",
    "list",
    "watch",
  ]),
  row("gwModels.enabled", false, variable("GWPROXY_ENABLE_MODELS"), "false"),
  row("mesh.autoEnabled", true, variable("GWPROXY_MESH_AUTO_ENABLED"), "true"),
  row("mesh.caAddress", "https://ca.mesh:15012", variable("GWPROXY_MESH_CA_ADDRESS")),
  row("mesh.clusterId", "one", variable("GWPROXY_MESH_CLUSTER_ID")),
  row("mesh.namespace", "mesh", variable("GWPROXY_MESH_NAMESPACE")),
  row("mesh.network", "net", variable("GWPROXY_MESH_NETWORK")),
  row("mesh.revision", "canary", variable("GWPROXY_MESH_REVISION")),
  row("rbac.gatewayNamespaces", ["team-a", "team-b"], names("RoleBinding"), [
    "gwproxy-gwproxy-system-deployer",
    "gwproxy-gwproxy-system-deployer",
    "gwproxy-gwproxy-system-local",
    "gwproxy-webhook",
    "gwproxy-test-client",
  ]),
  row("serviceAccount.name", "own", pod("serviceAccountName")),
  row("serviceAccount.annotations", { role: "arn" }, at("ServiceAccount", "own", "metadata/annotations"), {
    role: "arn",
  }),
];

const WEBHOOK_ROWS: readonly Row[] = [
  row("webhook.replicaCount", 2, hook("replicas")),
  row("webhook.failurePolicy", "Ignore", validation("failurePolicy")),
  row("webhook.port", 8443, hookContainer("args"), [
    "--address=:8443",
    "--service=gwproxy-system/gwproxy-webhook",
    "--configuration=gwproxy-gwproxy-system-webhook",
  ]),
  row("webhook.timeoutSeconds", 9, validation("timeoutSeconds")),
  row("webhook.namespaceSelector", SELECTOR, validation("namespaceSelector")),
  row("webhook.objectSelector", SELECTOR, validation("objectSelector")),
  row("webhook.resources", { limits: { cpu: "1" } }, hookContainer("resources")),
  row("webhook.podDisruptionBudget", BUDGET, at("PodDisruptionBudget", "gwproxy-webhook", "spec/minAvailable"), 1),
];

const MONITORING_ROWS: readonly Row[] = [
  row("monitoring.enabled", true, names("PodMonitor"), ["gwproxy-proxy"]),
  row(
    "monitoring.serviceMonitor.interval",
    "1m",
    at("ServiceMonitor", "gwproxy", "spec/endpoints/port=metrics/interval"),
  ),
  row("monitoring.serviceMonitor.extraLabels", LABELS, at("ServiceMonitor", "gwproxy", "metadata/labels/team"), "edge"),
  row(
    "monitoring.grafanaDashboard.labels",
    LABELS,
    at("ConfigMap", "gwproxy-dashboard", "metadata/labels/team"),
    "edge",
  ),
  row("monitoring.proxy.namespaceSelector", { any: true }, at("PodMonitor", "gwproxy-proxy", "spec/namespaceSelector")),
  row(
    "monitoring.proxy.gatewayClassNames",
    ["edge"],
    at("PodMonitor", "gwproxy-proxy", "spec/selector/matchExpressions/operator=In/values"),
  ),
];

const MONITORED = { monitoring: { enabled: true } };

export const BATCHES: readonly Batch[] = [
  { title: "pods and their images", rows: POD_ROWS },
  { title: "the Service of the controller", rows: SERVICE_ROWS },
  { title: "the GatewayClass and what the controller reads", rows: CLASS_ROWS },
  { title: "the webhook", rows: WEBHOOK_ROWS },
  { title: "monitoring", rows: MONITORING_ROWS },
  {
    title: "switches of monitoring",
    base: MONITORED,
    rows: [
      row("monitoring.serviceMonitor.enabled", false, names("ServiceMonitor"), []),
      row("monitoring.grafanaDashboard.enabled", false, names("ConfigMap"), []),
      row("monitoring.proxy.podMonitor.enabled", false, names("PodMonitor"), []),
    ],
  },
  {
    title: "what others provide",
    rows: [
      row("image.registry", "mirror.example.com", container("image"), "mirror.example.com/controller:v0.1.0"),
      row("proxy.image.tag", "7.1", variable("GWPROXY_PROXY_IMAGE_TAG"), "v7.1"),
      row("rbac.mesh", true, ruleOf("networking.istio.io", "serviceentries"), ["get", "list", "watch"]),
      row("controller.horizontalPodAutoscaler", { maxReplicas: 4 }, at("HorizontalPodAutoscaler", "gwproxy", "spec"), {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "gwproxy" },
        maxReplicas: 4,
      }),
      row("serviceAccount.create", false, pod("serviceAccountName"), "default"),
      row("gatewayClass.create", false, names("GatewayClass"), []),
      row("webhook.enabled", false, names("ValidatingWebhookConfiguration"), []),
    ],
  },
  {
    title: "no rights, no Service",
    rows: [
      row("rbac.create", false, names("ClusterRole"), []),
      row("controller.service.enabled", false, names("Service"), ["gwproxy-webhook"]),
    ],
  },
  {
    title: "the name of the release's objects",
    rows: [row("nameOverride", "edge", names("Service"), ["gwproxy-edge", "gwproxy-edge-webhook"])],
  },
  {
    title: "the full name",
    rows: [row("fullnameOverride", "edge", names("Service"), ["edge", "edge-webhook"])],
  },
];

/** Values that Helm refuses, with what it says. */
export const REFUSED: readonly { readonly values: object; readonly message: RegExp }[] = [
  { values: { controller: { replicas: 2 } }, message: /\/controller.*additional properties 'replicas' not allowed/ },
  { values: { webhook: { failurePolicy: "Maybe" } }, message: /\/webhook\/failurePolicy/ },
  { values: { controller: { replicaCount: "two" } }, message: /\/controller\/replicaCount/ },
  { values: { controller: { service: { ports: { agwGrpc: 0 } } } }, message: /\/controller\/service\/ports\/agwGrpc/ },
  { values: { monitoring: { proxy: { gatewayClassNames: [] } } }, message: /gatewayClassNames/ },
  { values: { controller: { logLevel: "loud" } }, message: /\/controller\/logLevel/ },
  { values: { controller: { logLevel: "info,proxy" } }, message: /\/controller\/logLevel/ },
  // null takes a default away: what templates need is named, and the rest is left out (see the test of nulls).
  { values: { image: null, webhook: null }, message: /missing properties 'image', 'webhook'/ },
  { values: { controller: { service: { ports: null } } }, message: /\/controller\/service': missing property 'ports'/ },
  { values: { monitoring: { enabled: true, proxy: null } }, message: /\/monitoring': missing property 'proxy'/ },
  { values: { imagePullSecrets: ["registry"] }, message: /\/imagePullSecrets\/0/ },
  { values: { discoveryNamespaceSelectors: [{ labels: {} }] }, message: /additional properties 'labels' not allowed/ },
  {
    values: { controller: { extraEnv: { A: {} } } },
    message: /controller\.extraEnv\.A: needs either value or valueFrom/,
  },
  {
    values: { controller: { extraEnv: { A: { value: "1", valueFrom: { fieldRef: {} } } } } },
    message: /controller\.extraEnv\.A: needs either value or valueFrom/,
  },
  {
    values: { controller: { extraEnv: { A: { valueFrom: {} } } } },
    message: /controller\.extraEnv\.A\.valueFrom: must not be empty/,
  },
  {
    values: { gatewayClassParametersRefs: { gwproxy: { name: "a" } } },
    message: /gatewayClassParametersRefs\.gwproxy: needs name and namespace/,
  },
  {
    values: { gatewayClassParametersRefs: { other: { name: "a", namespace: "b" } } },
    message: /gatewayClassParametersRefs\.other: the release makes the GatewayClass gwproxy only/,
  },
];

/**
 * Renders the Deployment of a data plane. Its pods run as an unprivileged user, write only to /tmp, and may bind low
 * ports through a sysctl of their own. The number of replicas is left unset, because setting it would fight an
 * autoscaler.
 */
import { hash } from "node:crypto";
import { dataPlaneName, TOKEN_AUDIENCE, TOKEN_FILE } from "../../api/data-plane.ts";
import { objectMeta, podLabels, selectorLabels, type Manifest, type RenderContext } from "./context.ts";
import { CONFIG_TEXT } from "./config.ts";
import { SESSION_KEY_ENTRY, sessionSecretName } from "./session-key.ts";

const METRICS_PORT = 15_020;
const READY = { path: "/healthz/ready", port: 15_021 } as const;
const USER = 10_101;
const TOKEN_SECONDS = 43_200;
const CA_FOLDER = "/etc/xds-tls";

const STANDARD_RESOURCES = { requests: { cpu: "100m", memory: "128Mi" } } as const;

/** Limits of the graceful shutdown, in seconds. */
const STANDARD_SHUTDOWN = { min: 10, max: 60 } as const;

export function renderDeployment(context: RenderContext): Manifest {
  const { plan } = context;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: objectMeta(context),
    spec: {
      selector: { matchLabels: selectorLabels(plan) },
      template: {
        metadata: { labels: podLabels(plan), annotations: podAnnotations(context) },
        spec: podSpec(context),
      },
    },
  };
}

/** Adds checksums of everything that pods read only at their start, so that a change starts new pods. */
function podAnnotations({ plan, settings: { xdsCa }, sessionKey }: RenderContext): Record<string, string> {
  return {
    ...plan.annotations,
    "prometheus.io/path": "/metrics",
    "prometheus.io/port": String(METRICS_PORT),
    "prometheus.io/scrape": "true",
    "checksum/config": checksum(CONFIG_TEXT),
    ...(xdsCa === undefined ? {} : { "checksum/xds-ca": checksum(xdsCa) }),
    "checksum/session-key": checksum(sessionKey),
  };
}

function podSpec(context: RenderContext): object {
  const name = dataPlaneName(context.plan.gateway.name);
  return {
    serviceAccountName: name,
    terminationGracePeriodSeconds: STANDARD_SHUTDOWN.max,
    // Together with the settings of the container this meets the restricted Pod Security Standard, which counts the
    // sysctl as safe.
    securityContext: {
      seccompProfile: { type: "RuntimeDefault" },
      sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
    },
    containers: [container(context)],
    volumes: volumes(context),
  };
}

function container(context: RenderContext): object {
  const { settings } = context;
  return {
    name: "gwproxy",
    image: settings.image,
    args: ["-f", "/config/config.yaml"],
    ports: [{ name: "metrics", containerPort: METRICS_PORT, protocol: "TCP" }],
    env: environment(context),
    resources: STANDARD_RESOURCES,
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: USER,
    },
    readinessProbe: { httpGet: READY, periodSeconds: 10 },
    startupProbe: { httpGet: READY, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 60 },
    volumeMounts: [
      { name: "config-volume", mountPath: "/config", readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
      { name: "xds-token", mountPath: "/var/run/secrets/xds-tokens", readOnly: true },
      ...(settings.xdsCa === undefined ? [] : [{ name: "xds-ca", mountPath: CA_FOLDER, readOnly: true }]),
    ],
  };
}

function environment({ plan, settings }: RenderContext): object[] {
  const field = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const key = { name: sessionSecretName(plan.gateway.name), key: SESSION_KEY_ENTRY };
  return [
    { name: "TERMINATION_GRACE_PERIOD_SECONDS", value: String(STANDARD_SHUTDOWN.max) },
    { name: "CONNECTION_MIN_TERMINATION_DEADLINE", value: `${STANDARD_SHUTDOWN.min}s` },
    field("NODE_NAME", "spec.nodeName"),
    // Clusters copy this label from nodes to pods since Kubernetes 1.35; elsewhere the variable is empty.
    field("NODE_ZONE", "metadata.labels['topology.kubernetes.io/zone']"),
    field("POD_NAMESPACE", "metadata.namespace"),
    field("POD_NAME", "metadata.name"),
    field("NAMESPACE", "metadata.namespace"),
    field("INSTANCE_IP", "status.podIP"),
    field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "CPU_LIMIT", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
    // The full name of the Gateway, even when object names are shortened (dataPlaneName): discovery identifies it by
    // this name.
    { name: "GATEWAY", value: plan.gateway.name },
    { name: "LOG_LEVEL", value: "info" },
    { name: "SESSION_KEY", valueFrom: { secretKeyRef: key } },
    { name: "XDS_ADDRESS", value: settings.xdsAddress },
    ...(settings.xdsCa === undefined ? [] : [{ name: "XDS_ROOT_CA", value: `${CA_FOLDER}/ca.crt` }]),
  ];
}

function volumes({ plan, settings }: RenderContext): object[] {
  const name = dataPlaneName(plan.gateway.name);
  const token = { audience: TOKEN_AUDIENCE, expirationSeconds: TOKEN_SECONDS, path: TOKEN_FILE };
  return [
    { name: "config-volume", configMap: { name } },
    { name: "tmp", emptyDir: {} },
    { name: "xds-token", projected: { sources: [{ serviceAccountToken: token }] } },
    ...(settings.xdsCa === undefined ? [] : [{ name: "xds-ca", configMap: { name: `${name}-xds-ca` } }]),
  ];
}

function checksum(text: string): string {
  return hash("sha256", text);
}

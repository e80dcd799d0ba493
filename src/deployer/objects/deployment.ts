/**
 * The pods of a data plane (spec controller 7). They run as nobody, write nothing but /tmp, and may bind low ports by a
 * sysctl of their own. The number of replicas is left out, so that an autoscaler is not fought.
 */
import { hash } from "node:crypto";
import { dataPlaneName, TOKEN_AUDIENCE, TOKEN_FILE } from "../../api/data-plane.ts";
import { objectMeta, podLabels, selectorLabels, type Manifest, type RenderContext } from "../context.ts";
import { CONFIG_TEXT } from "./config.ts";
import { SESSION_KEY_ENTRY, sessionSecretName } from "./session-key.ts";

const METRICS_PORT = 15_020;
const READY = { path: "/healthz/ready", port: 15_021 } as const;
const USER = 10_101;
const TOKEN_SECONDS = 43_200;
const CA_FOLDER = "/etc/xds-tls";

const STANDARD_RESOURCES = { requests: { cpu: "100m", memory: "128Mi" } } as const;

/** Seconds. */
const STANDARD_SHUTDOWN = { min: 10, max: 60 } as const;

export function renderDeployment(context: RenderContext): Manifest {
  const { placement } = context;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: objectMeta(context),
    spec: {
      selector: { matchLabels: selectorLabels(placement) },
      template: {
        metadata: { labels: podLabels(placement), annotations: podAnnotations(context) },
        spec: podSpec(context),
      },
    },
  };
}

/** The checksums start new pods when what they read at their start has changed. */
function podAnnotations({ placement, settings: { xdsCa }, sessionKey }: RenderContext): Record<string, string> {
  return {
    ...placement.annotations,
    "prometheus.io/path": "/metrics",
    "prometheus.io/port": String(METRICS_PORT),
    "prometheus.io/scrape": "true",
    "checksum/config": checksum(CONFIG_TEXT),
    ...(xdsCa === undefined ? {} : { "checksum/xds-ca": checksum(xdsCa) }),
    "checksum/session-key": checksum(sessionKey),
  };
}

function podSpec(context: RenderContext): object {
  const name = dataPlaneName(context.placement.gateway.name);
  return {
    serviceAccountName: name,
    terminationGracePeriodSeconds: STANDARD_SHUTDOWN.max,
    // With the settings of the container this is what the restricted Pod Security Standard asks for; the sysctl is one of
    // those that it calls safe.
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

function environment({ placement, settings }: RenderContext): object[] {
  const field = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const key = { name: sessionSecretName(placement.gateway.name), key: SESSION_KEY_ENTRY };
  return [
    { name: "TERMINATION_GRACE_PERIOD_SECONDS", value: String(STANDARD_SHUTDOWN.max) },
    { name: "CONNECTION_MIN_TERMINATION_DEADLINE", value: `${STANDARD_SHUTDOWN.min}s` },
    field("NODE_NAME", "spec.nodeName"),
    // Of nodes to pods, clusters copy it from Kubernetes 1.35 on; elsewhere it is empty.
    field("NODE_ZONE", "metadata.labels['topology.kubernetes.io/zone']"),
    field("POD_NAMESPACE", "metadata.namespace"),
    field("POD_NAME", "metadata.name"),
    field("NAMESPACE", "metadata.namespace"),
    field("INSTANCE_IP", "status.podIP"),
    field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "CPU_LIMIT", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
    // The Gateway's own name, also where it is longer than names of other objects may be: discovery goes by it.
    { name: "GATEWAY", value: placement.gateway.name },
    { name: "LOG_LEVEL", value: "info" },
    { name: "SESSION_KEY", valueFrom: { secretKeyRef: key } },
    { name: "XDS_ADDRESS", value: settings.xdsAddress },
    ...(settings.xdsCa === undefined ? [] : [{ name: "XDS_ROOT_CA", value: `${CA_FOLDER}/ca.crt` }]),
  ];
}

function volumes({ placement, settings }: RenderContext): object[] {
  const name = dataPlaneName(placement.gateway.name);
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

/**
 * Renders the pods of a data plane. They run as an unprivileged user, write only to /tmp, and may bind low ports through
 * a sysctl of their own. `workload.ts` uses it.
 */
import { hash } from "node:crypto";
import { dataPlaneName } from "../../api/data-plane.ts";
import { podLabels, type RenderContext } from "./context.ts";
import { configText, rawSettings } from "./config.ts";
import { environment } from "./environment.ts";
import { imageReference } from "./image.ts";
import { meshLabels } from "./mesh.ts";
import { shutdownOf } from "./shutdown.ts";
import { podVolumes } from "./volumes.ts";

const METRICS_PORT = 15_020;
const READINESS_PORT = 15_021;
const USER = 10_101;

const STANDARD_REQUESTS = { cpu: "100m", memory: "128Mi" } as const;

export function renderPodTemplate(context: RenderContext): object {
  const labels = { ...podLabels(context.plan), ...meshLabels(context) };
  return { metadata: { labels, annotations: podAnnotations(context) }, spec: podSpec(context) };
}

/** Adds checksums of everything that pods read only at their start, so that a change starts new pods. */
function podAnnotations({ plan, settings: { xdsCa }, sessionKey }: RenderContext): Record<string, string> {
  return {
    "prometheus.io/path": "/metrics",
    "prometheus.io/port": String(rawSettings(plan.parameters).metricsAddress?.port ?? METRICS_PORT),
    "prometheus.io/scrape": "true",
    ...plan.annotations,
    "checksum/config": checksum(configText(plan.parameters)),
    ...(xdsCa === undefined ? {} : { "checksum/xds-ca": checksum(xdsCa) }),
    ...(sessionKey === undefined ? {} : { "checksum/session-key": checksum(sessionKey) }),
  };
}

function podSpec(context: RenderContext): object {
  const { plan, settings } = context;
  return {
    serviceAccountName: dataPlaneName(plan.gateway.name),
    ...(settings.imagePullSecrets.length === 0
      ? {}
      : { imagePullSecrets: settings.imagePullSecrets.map((name) => ({ name })) }),
    terminationGracePeriodSeconds: shutdownOf(plan.parameters).max,
    // Together with the settings of the container this meets the restricted Pod Security Standard, which counts the
    // sysctl as safe.
    securityContext: {
      seccompProfile: { type: "RuntimeDefault" },
      sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
    },
    containers: [container(context)],
    volumes: podVolumes(context).map(({ name, source }) => ({ name, ...source })),
  };
}

function container(context: RenderContext): object {
  const { parameters } = context.plan;
  const { image, resources } = parameters;
  const { metricsAddress, readinessAddress } = rawSettings(parameters);
  const ready = { path: "/healthz/ready", port: readinessAddress?.port ?? READINESS_PORT };
  return {
    name: "gwproxy",
    image: imageReference(image, context.settings.image),
    ...(image?.pullPolicy === undefined ? {} : { imagePullPolicy: image.pullPolicy }),
    args: ["-f", "/config/config.yaml"],
    ports: [{ name: "metrics", containerPort: metricsAddress?.port ?? METRICS_PORT, protocol: "TCP" }],
    env: environment(context),
    resources: { ...resources, requests: { ...STANDARD_REQUESTS, ...resources?.requests } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: USER,
    },
    readinessProbe: { httpGet: ready, periodSeconds: 10 },
    startupProbe: { httpGet: ready, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 60 },
    volumeMounts: podVolumes(context).map(({ name, mountPath, isWritable }) => ({
      name,
      mountPath,
      ...(isWritable === true ? {} : { readOnly: true }),
    })),
  };
}

function checksum(text: string): string {
  return hash("sha256", text);
}

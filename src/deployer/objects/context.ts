/** Defines the parts that all objects of one data plane share: names, labels, annotations and the owning Gateway. */
import {
  dataPlaneName,
  GATEWAY_CLASS_LABEL,
  GATEWAY_NAME_LABEL,
  MANAGED_BY,
  MANAGED_BY_LABEL,
} from "../../api/data-plane.ts";
import type { KubeObject, ObjectMeta } from "../../api/object.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import type { DeploymentPlan } from "../../translator/gateways/deployment-plan.ts";
import type { ImageSettings } from "./image.ts";

/**
 * A complete object as it is applied. The fields it sets belong to the controller; all others are left to other
 * managers.
 */
export interface Manifest extends KubeObject {
  readonly metadata: ManifestMeta;
  readonly [member: string]: unknown;
}

export interface ManifestMeta extends ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller: boolean;
}

/** Settings of the mesh for Gateways whose parameters leave them open. */
interface MeshSettings {
  /** Switches the mesh on for Gateways of the controller's own class. */
  readonly autoEnabled: boolean;
  readonly caAddress: string;
  readonly clusterId: string;
  readonly network: string;
}

/** Settings that are the same for all Gateways. */
export interface DeployerSettings {
  /** Image of data planes, as far as the parameters of a Gateway do not say otherwise. */
  readonly image: ImageSettings;
  /** Names of the Secrets with which nodes pull that image. */
  readonly imagePullSecrets: readonly string[];
  /** Hosts that data planes may send ambient cloud credentials to; "" leaves it to them. */
  readonly ambientIdentityHosts: string;
  /** The controller's own GatewayClass. */
  readonly className: string;
  readonly mesh: MeshSettings;
  /** Version of this program. */
  readonly version: string;
  /** URL such as "https://gwproxy.gwproxy-system.svc:9978". */
  readonly xdsAddress: string;
  /**
   * PEM of the CA that signs the controller's certificate; undefined with plaintext, or when the system's CAs are
   * trusted.
   */
  readonly xdsCa: string | undefined;
  /** Service port of a Gateway without any other port; with 0 such a Gateway is not deployed. */
  readonly noListenersPort: number;
}

export interface RenderContext {
  readonly plan: DeploymentPlan;
  readonly settings: DeployerSettings;
  /** Ports that clients connect to; never empty. */
  readonly ports: readonly number[];
  /** 64 hexadecimal digits; a secret. Undefined when the parameters bring a key of their own. */
  readonly sessionKey: string | undefined;
}

/** Ports of the data plane's own servers: admin, metrics, readiness. */
const RESERVED_PORTS: ReadonlySet<number> = new Set([15_000, 15_020, 15_021]);

/** @returns an empty list when nothing has to be deployed */
export function servicePorts({ ports }: DeploymentPlan, { noListenersPort }: DeployerSettings): readonly number[] {
  const open = ports.filter((port) => !RESERVED_PORTS.has(port));
  return open.length > 0 || noListenersPort === 0 ? open : [noListenersPort];
}

/**
 * Labels by which the Service and the Deployment select their pods. They must never change: the selector of a
 * Deployment is immutable.
 */
export function selectorLabels({ gateway }: DeploymentPlan): Readonly<Record<string, string>> {
  const name = dataPlaneName(gateway.name);
  return { "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, [GATEWAY_NAME_LABEL]: name };
}

export function podLabels(plan: DeploymentPlan): Readonly<Record<string, string>> {
  return { ...plan.labels, ...selectorLabels(plan), ...classLabel(plan) };
}

/** @param suffix part of the object name after that of the data plane */
export function objectMeta({ plan, settings }: RenderContext, suffix = ""): ManifestMeta {
  const { gateway, uid, labels, annotations } = plan;
  return {
    name: `${dataPlaneName(gateway.name)}${suffix}`,
    namespace: gateway.namespace,
    labels: {
      ...labels,
      ...selectorLabels(plan),
      ...classLabel(plan),
      [MANAGED_BY_LABEL]: MANAGED_BY,
      "app.kubernetes.io/version": settings.version,
    },
    annotations,
    // blockOwnerDeletion is not set: some clusters allow it only to accounts that may change the finalizers of
    // Gateways.
    ownerReferences: [
      {
        apiVersion: `${GATEWAY_GROUP}/v1`,
        kind: "Gateway",
        name: gateway.name,
        uid,
        controller: true,
      },
    ],
  };
}

function classLabel({ className }: DeploymentPlan): Readonly<Record<string, string>> {
  return { [GATEWAY_CLASS_LABEL]: dataPlaneName(className) };
}

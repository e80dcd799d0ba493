/**
 * Defines the kinds of Kubernetes itself that the translator reads, with only the fields that are used. Their API is
 * frozen, so they are written by hand; delivered objects may hold more fields.
 */
import type { KubeObject } from "./object.ts";

export interface Service extends KubeObject {
  readonly spec: ServiceSpec;
}

export interface ServiceSpec {
  readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
  /** "None" makes the Service headless. */
  readonly clusterIP?: string;
  /** The DNS name of a Service of type ExternalName. */
  readonly externalName?: string;
  readonly ports?: readonly ServicePort[];
  /** Treats pods as ready for their whole life. */
  readonly publishNotReadyAddresses?: boolean;
  /** "Local" restricts traffic to endpoints on the caller's node. */
  readonly internalTrafficPolicy?: "Cluster" | "Local";
  /** "PreferClose", "PreferSameZone" or "PreferSameNode"; Kubernetes may add values. */
  readonly trafficDistribution?: string;
  /** The IP family of the cluster IP comes first. */
  readonly ipFamilies?: readonly ("IPv4" | "IPv6")[];
}

interface ServicePort {
  /** Required when there are several ports; EndpointSlices repeat it. */
  readonly name?: string;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP" | "SCTP";
  /** A number, or the name of a container port. */
  readonly targetPort?: number | string;
  /** Application protocol, such as "http", "https" or "kubernetes.io/h2c" (GEP-1911). */
  readonly appProtocol?: string;
}

/** Holds endpoints of the Service that its label `kubernetes.io/service-name` names. */
export interface EndpointSlice extends KubeObject {
  readonly addressType: "IPv4" | "IPv6" | "FQDN";
  readonly endpoints?: readonly SliceEndpoint[];
  readonly ports?: readonly SlicePort[];
}

export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly conditions?: SliceConditions;
  /** Refers to the pod. */
  readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string };
  readonly nodeName?: string;
  readonly zone?: string;
  readonly hints?: { readonly forZones?: readonly { readonly name: string }[] };
}

interface SliceConditions {
  /** Counts as true when absent. */
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
}

interface SlicePort {
  readonly name?: string;
  readonly port?: number;
  readonly protocol?: "TCP" | "UDP" | "SCTP";
  readonly appProtocol?: string;
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Values encoded in base64. */
  readonly data?: Readonly<Record<string, string>>;
  /** Values as text. An API server never returns this field; files may hold it, and then it overrides `data`. */
  readonly stringData?: Readonly<Record<string, string>>;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  /** Values encoded in base64. */
  readonly binaryData?: Readonly<Record<string, string>>;
}

/** A Pod as an endpoint. Its specification is not kept, because it is large and nothing reads it. */
export interface Pod extends KubeObject {
  readonly status?: PodStatus;
}

interface PodStatus {
  readonly phase?: string;
  readonly podIP?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

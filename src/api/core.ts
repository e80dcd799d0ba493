/**
 * The kinds of Kubernetes itself that the translator reads, with the fields that are used and no others. Their API is
 * frozen, so they are written here by hand; what a source delivers may hold more.
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
  /** Pods count as ready from the start to the end. */
  readonly publishNotReadyAddresses?: boolean;
  /** "Local": only endpoints of the caller's node. */
  readonly internalTrafficPolicy?: "Cluster" | "Local";
  /** "PreferClose", "PreferSameZone", "PreferSameNode"; others may come. */
  readonly trafficDistribution?: string;
  /** The one of the cluster IP first. */
  readonly ipFamilies?: readonly ("IPv4" | "IPv6")[];
}

interface ServicePort {
  /** Required when there are several ports; EndpointSlices repeat it. */
  readonly name?: string;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP" | "SCTP";
  /** A number, or the name of a container's port. */
  readonly targetPort?: number | string;
  /** "http", "https", "kubernetes.io/h2c", … */
  readonly appProtocol?: string;
}

/** Belongs to the Service that its label `kubernetes.io/service-name` names. */
export interface EndpointSlice extends KubeObject {
  readonly addressType: "IPv4" | "IPv6" | "FQDN";
  readonly endpoints?: readonly SliceEndpoint[];
  readonly ports?: readonly SlicePort[];
}

export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly conditions?: SliceConditions;
  /** The pod. */
  readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string };
  readonly nodeName?: string;
  readonly zone?: string;
  readonly hints?: { readonly forZones?: readonly { readonly name: string }[] };
}

interface SliceConditions {
  /** Absent means ready. */
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
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
  /** Values as text. An API server never returns it; files may hold it, and then it wins over `data`. */
  readonly stringData?: Readonly<Record<string, string>>;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  /** Values in base64. */
  readonly binaryData?: Readonly<Record<string, string>>;
}

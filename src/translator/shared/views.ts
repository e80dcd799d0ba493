/**
 * What the parts of the translation see of each other: views of Gateways, listeners, the parents of routes, Services and
 * the targets of policies. The part that owns an object computes its view; the others and the status read it.
 */
import { Reason } from "../../api/conditions.ts";
import type { LabelSelector } from "../../api/label-selector.ts";
import type { ObjectId } from "../../api/object.ts";
import type { Resource } from "../../ir/resource.ts";
import { HttpVersion, Locality } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/** A reason and message for a condition that is false. */
export interface ConditionError {
  readonly reason: Reason;
  readonly message: string;
}

/** A kind of route that a listener accepts, as Gateway API lists it. */
export interface RouteGroupKind {
  readonly group: string;
  readonly kind: string;
}

/** The part of a listener that routes and status need. */
export interface ListenerView {
  readonly name: string;
  readonly key: string;
  /** Key of the Bind that it listens on. */
  readonly bind: string;
  readonly port: number;
  /** The port has no socket and is reached only through a tunnel. */
  readonly internal: boolean;
  readonly protocol: string;
  /** Lower case; an empty hostname matches any host. */
  readonly hostname: string;
  readonly supportedKinds: readonly RouteGroupKind[];
  readonly namespaces: { readonly from: string; readonly selector?: LabelSelector };
  /** Explains why it cannot serve; undefined when it serves. */
  readonly error: ConditionError | undefined;
  /** Lists the allowed route kinds that are not supported; the listener still serves the others. */
  readonly kindError: ConditionError | undefined;
  /** Explains why its TLS handshakes fail. */
  readonly tlsError: ConditionError | undefined;
  /** Explains why no client certificate can be trusted although clients need one. */
  readonly trustError: ConditionError | undefined;
}

export interface GatewayView {
  readonly id: ObjectId;
  readonly key: string;
  readonly generation: number;
  /** Explains why the Gateway as a whole is not accepted. */
  readonly error: ConditionError | undefined;
  /** Listeners of the Gateway itself; those of a ListenerSet are in its own view. */
  readonly listeners: readonly ListenerView[];
  readonly sets: readonly ListenerSetView[];
  /** Set when the Gateway names a client certificate for backends. */
  readonly client: { readonly error: ConditionError | undefined } | undefined;
  readonly admitsUnverifiedClients: boolean;
  readonly resources: readonly Resource[];
}

/** A source of the model catalog of a Gateway. */
export interface CatalogSourceView {
  /** Key of its resource. */
  readonly key: string;
  /** ConfigMap and entry. */
  readonly name: string;
  /** Explains why it has no text. */
  readonly error: string | undefined;
}

export interface ListenerSetView {
  readonly id: ObjectId;
  readonly generation: number;
  /** Key of the Gateway that it attaches to. */
  readonly gateway: string;
  /** The Gateway allows the set to add listeners; when false, `listeners` is empty. */
  readonly allowed: boolean;
  readonly listeners: readonly ListenerView[];
}

export type RouteError = ConditionError & { readonly path: string };

export interface ParentView {
  /** Keys ("namespace/name") of the Gateways: one of a Gateway or ListenerSet, those of all its own of a route. */
  readonly gateways: readonly string[];
  /** The parent as the status names it: without section and port. */
  readonly ref: { readonly group: string; readonly kind: string; readonly namespace: string; readonly name: string };
  readonly listeners: readonly AttachedListener[];
  /** Explains why the route is attached to no listener; undefined when it is attached to one. */
  readonly error: ConditionError | undefined;
  /** Index in `parentRefs` of the first reference to this parent, which the error is about; -1 when none names it. */
  readonly at: number;
}

export interface AttachedListener {
  readonly key: string;
  readonly name: string;
  /** Hostnames that both the listener and the route accept; empty means every host of the listener. */
  readonly hostnames: readonly string[];
}

export interface TargetError {
  readonly path: string;
  readonly message: string;
  /** The target exists, but no Gateway leads to it; the policy itself is correct. */
  readonly isUnattached: boolean;
  /** The target belongs to another controller. */
  readonly foreign: boolean;
}

/** The settings of a Service that affect the choice among its endpoints. */
export interface Distribution {
  /** Localities in order from coarse to fine. When empty, hints in the EndpointSlices decide, if there are any. */
  readonly preferences: readonly Locality[];
  /** Only endpoints in the preferred locality may serve; set by `internalTrafficPolicy: Local`. */
  readonly strict: boolean;
  /** Treats pods that are not ready as ready. */
  readonly publishesNotReady: boolean;
  /** Uses the IPv6 address of a pod that has addresses of both families. */
  readonly prefersIPv6: boolean;
}

export interface ServicePortView {
  readonly name: string;
  readonly port: number;
  readonly key: string;
  readonly version: HttpVersion;
  /** The port declares that it is an A2A agent. */
  readonly isA2a: boolean;
  /** The port declares that it speaks HTTP/2 without TLS (h2c). */
  readonly isPlaintext: boolean;
}

export interface ServiceView {
  readonly id: ObjectId;
  readonly ports: readonly ServicePortView[];
  /** The name that a Service of type ExternalName points to; undefined for other types. */
  readonly externalName: string | undefined;
  readonly distribution: Distribution;
}

/** An InferencePool, and the Service port of its endpoint picker. */
export interface PoolView {
  readonly id: ObjectId;
  readonly generation: number;
  readonly key: string;
  /** Labels of its Pods. */
  readonly labels: Readonly<Record<string, string>>;
  /** Each port of a Pod is an endpoint. */
  readonly ports: readonly number[];
  readonly failOpen: boolean;
  readonly picker: { readonly backend: string; readonly isPlaintext: boolean } | { readonly error: ConditionError };
}

/** One parent object of a model, with all references to it. */
export interface ModelParent extends Omit<ParentView, "listeners"> {
  /** Keys of the Backends that offer the model. */
  readonly backends: readonly string[];
}

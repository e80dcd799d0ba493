/**
 * Declares the input collections of the translator, one per kind that it reads, keyed "namespace/name", and feeds
 * object events into them. `translate.ts` and `graph.ts` use it. Events of other kinds are ignored, so that a source
 * may deliver whole folders.
 */
import type { BackendTLSPolicy } from "../../generated/types/gateway-api/backendtlspolicy.ts";
import type { GatewayClass } from "../../generated/types/gateway-api/gatewayclass.ts";
import type { Gateway } from "../../generated/types/gateway-api/gateway.ts";
import type { GRPCRoute } from "../../generated/types/gateway-api/grpcroute.ts";
import type { HTTPRoute } from "../../generated/types/gateway-api/httproute.ts";
import type { TCPRoute } from "../../generated/types/gateway-api/tcproute.ts";
import type { TLSRoute } from "../../generated/types/gateway-api/tlsroute.ts";
import type { ListenerSet } from "../../generated/types/gateway-api/listenerset.ts";
import type { InferencePool } from "../../generated/types/inference/inferencepool.ts";
import type { ReferenceGrant } from "../../generated/types/gateway-api/referencegrant.ts";
import type { GwBackend } from "../../generated/types/backend.ts";
import type { GwModel } from "../../generated/types/model.ts";
import type { GwParameters } from "../../generated/types/parameters.ts";
import type { GwPolicy } from "../../generated/types/policy.ts";
import type { ConfigMap, EndpointSlice, Pod, Secret, Service } from "../api/core.ts";
import { objectId, type KubeObject, type ObjectId } from "../api/object.ts";
import { DISCOVERY_GROUP, GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP, nameKey } from "../api/refs.ts";
import type { Graph, Input } from "../lib/collections/graph.ts";
import type { JwksDocument } from "../sources/remote/documents.ts";
import type { TranslatorEvent } from "./translator.ts";

/** A GwPolicy that admission rejected; `object` is unchecked and may have any shape. */
interface RefusedPolicy {
  readonly id: ObjectId;
  readonly object: unknown;
  readonly reason: string;
}

export interface Inputs {
  readonly classes: Input<GatewayClass>;
  readonly gateways: Input<Gateway>;
  readonly listenerSets: Input<ListenerSet>;
  readonly httpRoutes: Input<HTTPRoute>;
  readonly grpcRoutes: Input<GRPCRoute>;
  readonly tcpRoutes: Input<TCPRoute>;
  readonly tlsRoutes: Input<TLSRoute>;
  readonly backendTlsPolicies: Input<BackendTLSPolicy>;
  readonly grants: Input<ReferenceGrant>;
  readonly services: Input<Service>;
  readonly slices: Input<EndpointSlice>;
  readonly pools: Input<InferencePool>;
  readonly pods: Input<Pod>;
  readonly secrets: Input<Secret>;
  readonly configMaps: Input<ConfigMap>;
  readonly namespaces: Input<KubeObject>;
  readonly backends: Input<GwBackend>;
  readonly policies: Input<GwPolicy>;
  readonly models: Input<GwModel>;
  readonly parameters: Input<GwParameters>;
  readonly refused: Input<RefusedPolicy>;
  /** Documents fetched from other servers, by the key of the request. */
  readonly documents: Input<JwksDocument>;
}

const POLICY_KIND = `${GWPROXY_GROUP}/GwPolicy`;

const KINDS: Readonly<Record<string, keyof Inputs>> = {
  [`${GATEWAY_GROUP}/GatewayClass`]: "classes",
  [`${GATEWAY_GROUP}/Gateway`]: "gateways",
  [`${GATEWAY_GROUP}/ListenerSet`]: "listenerSets",
  [`${GATEWAY_GROUP}/HTTPRoute`]: "httpRoutes",
  [`${GATEWAY_GROUP}/GRPCRoute`]: "grpcRoutes",
  [`${GATEWAY_GROUP}/TCPRoute`]: "tcpRoutes",
  [`${GATEWAY_GROUP}/TLSRoute`]: "tlsRoutes",
  [`${GATEWAY_GROUP}/BackendTLSPolicy`]: "backendTlsPolicies",
  [`${GATEWAY_GROUP}/ReferenceGrant`]: "grants",
  [`${DISCOVERY_GROUP}/EndpointSlice`]: "slices",
  [`${GWPROXY_GROUP}/GwBackend`]: "backends",
  [POLICY_KIND]: "policies",
  [`${GWPROXY_GROUP}/GwModel`]: "models",
  [`${GWPROXY_GROUP}/GwParameters`]: "parameters",
  [`${INFERENCE_GROUP}/InferencePool`]: "pools",
  "/Pod": "pods",
  "/Service": "services",
  "/Secret": "secrets",
  "/ConfigMap": "configMaps",
  "/Namespace": "namespaces",
};

export function declareInputs(graph: Graph): Inputs {
  return {
    classes: graph.input("classes"),
    gateways: graph.input("gateways"),
    listenerSets: graph.input("listenerSets"),
    httpRoutes: graph.input("httpRoutes"),
    grpcRoutes: graph.input("grpcRoutes"),
    tcpRoutes: graph.input("tcpRoutes"),
    tlsRoutes: graph.input("tlsRoutes"),
    backendTlsPolicies: graph.input("backendTlsPolicies"),
    grants: graph.input("grants"),
    services: graph.input("services"),
    slices: graph.input("slices"),
    pools: graph.input("pools"),
    pods: graph.input("pods"),
    secrets: graph.input("secrets"),
    configMaps: graph.input("configMaps"),
    namespaces: graph.input("namespaces"),
    backends: graph.input("backends"),
    policies: graph.input("policies"),
    models: graph.input("models"),
    parameters: graph.input("parameters"),
    refused: graph.input("refused"),
    documents: graph.input("documents"),
  };
}

/**
 * Applies one event. A rejected GwPolicy replaces its last good version, so that its targets fail closed
 * (`policies/fail-closed.ts`); other rejected kinds keep their last good version.
 */
export function feed(inputs: Inputs, event: TranslatorEvent): void {
  if (event.type === "document") {
    if (event.document === undefined) inputs.documents.delete(event.key);
    else inputs.documents.set(event.key, event.document);
    return;
  }
  const id = event.type === "set" ? objectId(event.object) : event.id;
  const kind = `${id.group}/${id.kind}`;
  const input = KINDS[kind];
  if (input === undefined) return;
  const key = nameKey(id);
  if (event.type === "refused") {
    if (kind !== POLICY_KIND) return;
    inputs.policies.delete(key);
    inputs.refused.set(key, { id, object: event.object, reason: event.reason });
    return;
  }
  if (kind === POLICY_KIND) inputs.refused.delete(key);
  // Sources deliver validated objects, and KINDS ties each kind to the collection of its type, so the cast is safe.
  const collection = inputs[input] as Input<unknown>;
  if (event.type === "set") collection.set(key, event.object);
  else collection.delete(key);
}

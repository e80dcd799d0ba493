/** The versions of the APIs of others whose kinds the gateway reads. The generator and the tests take them from here. */
export const GATEWAY_API_MODULE = "sigs.k8s.io/gateway-api";
export const GATEWAY_API_VERSION = "v1.6.3";

/** The inference extension of the Gateway API, whose InferencePool is read where the setting asks for it. */
export const INFERENCE_MODULE = "sigs.k8s.io/gateway-api-inference-extension";
export const INFERENCE_VERSION = "v1.2.0";

export interface UpstreamKind {
  readonly kind: string;
  /** File in the folder of the module's CRDs. */
  readonly file: string;
  /** Name of the generated module of types. */
  readonly types: string;
}

/** The kinds whose types and validators are generated. */
export const GATEWAY_API_KINDS: readonly UpstreamKind[] = [
  { kind: "BackendTLSPolicy", file: "gateway.networking.k8s.io_backendtlspolicies.yaml", types: "backendtlspolicy" },
  { kind: "Gateway", file: "gateway.networking.k8s.io_gateways.yaml", types: "gateway" },
  { kind: "GatewayClass", file: "gateway.networking.k8s.io_gatewayclasses.yaml", types: "gatewayclass" },
  { kind: "GRPCRoute", file: "gateway.networking.k8s.io_grpcroutes.yaml", types: "grpcroute" },
  { kind: "HTTPRoute", file: "gateway.networking.k8s.io_httproutes.yaml", types: "httproute" },
  { kind: "TCPRoute", file: "gateway.networking.k8s.io_tcproutes.yaml", types: "tcproute" },
  { kind: "TLSRoute", file: "gateway.networking.k8s.io_tlsroutes.yaml", types: "tlsroute" },
  { kind: "ListenerSet", file: "gateway.networking.k8s.io_listenersets.yaml", types: "listenerset" },
  { kind: "ReferenceGrant", file: "gateway.networking.k8s.io_referencegrants.yaml", types: "referencegrant" },
];

export const INFERENCE_KINDS: readonly UpstreamKind[] = [
  { kind: "InferencePool", file: "inference.networking.k8s.io_inferencepools.yaml", types: "inferencepool" },
];

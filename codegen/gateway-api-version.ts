/** The version of the Gateway API whose kinds the gateway reads. The generator and the tests take it from here. */
export const GATEWAY_API_MODULE = "sigs.k8s.io/gateway-api";
export const GATEWAY_API_VERSION = "v1.6.3";

export interface UpstreamKind {
  readonly kind: string;
  /** File in config/crd/standard of the module. */
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

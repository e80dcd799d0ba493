/** Manifests of an InferencePool on loopback: each port is an endpoint of its one Pod, at 127.0.0.1. */
import { documents } from "./gateway.ts";

export interface PoolOptions {
  readonly ports: readonly number[];
  /** Port of the picker on loopback. */
  readonly picker: number;
  readonly failureMode?: "FailOpen" | "FailClose";
  /** The picker speaks TLS with a certificate that nothing verifies. */
  readonly tls?: boolean;
}

/** Returns the pool `llama` with its Pod, and its picker as the Service `picker`. */
export function inferencePool({ ports, picker, failureMode = "FailClose", tls = false }: PoolOptions): string {
  const numbers = ports.map((port) => `{number: ${port}}`).join(", ");
  return documents(
    `apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama}
spec:
  selector: {matchLabels: {app: llama}}
  targetPorts: [${numbers}]
  endpointPickerRef: {name: picker, port: {number: 9002}, failureMode: ${failureMode}}`,
    `apiVersion: v1
kind: Pod
metadata: {name: llama-0, labels: {app: llama}}
status: {podIP: 127.0.0.1}`,
    `apiVersion: v1
kind: Service
metadata: {name: picker}
spec: {ports: [{name: grpc, port: 9002, appProtocol: ${tls ? "http2" : "kubernetes.io/h2c"}}]}`,
    `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: picker, labels: {kubernetes.io/service-name: picker}}
addressType: IPv4
ports: [{name: grpc, port: ${picker}}]
endpoints: [{addresses: [127.0.0.1]}]`,
  );
}

/** Returns the route `web` to the pool. */
export const POOL_ROUTE: string = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: llama}]}]`;

/** Returns the GwBackend `chat`, a custom provider in front of the pool, and the route `web` to it. */
export const POOL_CHAT: string = documents(
  `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat}
spec:
  ai:
    provider:
      custom:
        formats: [{type: Completions}]
        backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}`,
  `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: chat}]}]`,
);

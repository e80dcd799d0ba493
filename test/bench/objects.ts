/** Builds the Kubernetes objects of the churn and scale benchmarks (`churn-forms.ts`, `scale.ts`). */

export function gateway(port: number, allowedListeners?: object): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "bench", namespace: "default" },
    spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port, protocol: "HTTP" }], allowedListeners },
  };
}

export function listenerSet(name: string, port: number, hostname: string): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: { name, namespace: "default" },
    spec: {
      parentRef: { name: "bench" },
      listeners: [{ name: "http", port, protocol: "HTTP", hostname }],
    },
  };
}

export function backend(name: string, port: number): object {
  const metadata = { name, namespace: "default" };
  return {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwBackend",
    metadata,
    spec: { static: { host: "127.0.0.1", port } },
  };
}

export function backendRef(name: string): object {
  return { group: "gwproxy.dev", kind: "GwBackend", name };
}

export function route(name: string, prefix: string, to: object, parent: object = { name: "bench" }): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name, namespace: "default" },
    spec: {
      parentRefs: [parent],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: prefix } }], backendRefs: [to] }],
    },
  };
}

export function service(): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "flapping", namespace: "default" },
    spec: { ports: [{ name: "http", port: 80 }] },
  };
}

export function slice(at: number, address: string, port: number, owner = "flapping"): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${owner}-${at}`,
      namespace: "default",
      labels: { "kubernetes.io/service-name": owner },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: "http", port }],
  };
}

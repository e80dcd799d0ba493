/** Services of another namespace, for tests of references that may cross namespaces. */

/** Returns Services of the namespace infra that lead to the port by their port 9000, and the permission to name them. */
export const serviceElsewhere = (port: number, ...names: readonly string[]): string[] => [
  `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: issuers, namespace: infra}
spec:
  from: [${["GwBackend", "GwPolicy", "GwModel"].map((kind) => `{group: gwproxy.dev, kind: ${kind}, namespace: default}`).join(", ")}]
  to: [{group: "", kind: Service}]
`,
  ...names.map(
    (name) => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: infra}
spec: {ports: [{name: other, port: 9001}, {name: http, port: 9000}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: infra, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{name: http, port: ${port}}, {name: other, port: 1}]
`,
  ),
];

/** Services of another namespace, for tests of references that may cross namespaces. */
import { serviceApart } from "./models.ts";

/** Returns Services of the namespace infra that lead to the port by their port 80, and the permission to name them. */
export const serviceElsewhere = (port: number, ...names: readonly string[]): string[] => [
  `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: issuers, namespace: infra}
spec:
  from: [${["GwBackend", "GwPolicy", "GwModel"].map((kind) => `{group: gwproxy.dev, kind: ${kind}, namespace: default}`).join(", ")}]
  to: [{group: "", kind: Service}]
`,
  ...names.map((name) => serviceApart("infra", name, port)),
];

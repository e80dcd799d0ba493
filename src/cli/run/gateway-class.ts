/** The class of our Gateways: made when it is missing, so that applying a Gateway is all a user has to do. */
import type { KubernetesClient } from "../../sources/kubernetes/client.ts";

export async function ensureGatewayClass(
  client: KubernetesClient,
  { name, controllerName }: { readonly name: string; readonly controllerName: string },
): Promise<void> {
  await client.request({
    method: "PATCH",
    path: `/apis/gateway.networking.k8s.io/v1/gatewayclasses/${encodeURIComponent(name)}`,
    query: { fieldManager: controllerName, force: "true" },
    contentType: "application/apply-patch+yaml",
    body: {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: { name },
      spec: { controllerName, description: "Gateways served by gwproxy" },
    },
  });
}

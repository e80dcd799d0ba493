/** Tells the API server which authorities sign the webhook's certificate: the caBundle of a ValidatingWebhookConfiguration. */
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

const COLLECTION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/**
 * Sets the bundle of every webhook of one configuration; writes only when it differs.
 * @param pem one or more certificates
 * @throws ApiError, also when somebody changed the configuration in between
 */
export async function setCaBundle(
  client: KubernetesClient,
  name: string,
  pem: string,
): Promise<"written" | "unchanged" | "missing"> {
  const path = `${COLLECTION}/${encodeURIComponent(name)}`;
  const caBundle = Buffer.from(pem).toString("base64");
  let current: Configuration;
  try {
    current = (await client.request({ method: "GET", path })) as Configuration; // the API server validated its shape
  } catch (error) {
    if (isStatus(error, 404)) return "missing";
    throw error;
  }
  const stale = (current.webhooks ?? []).filter(({ clientConfig }) => clientConfig.caBundle !== caBundle);
  if (stale.length === 0) return "unchanged";
  const { resourceVersion } = current.metadata;
  await client.request({
    method: "PATCH",
    path,
    // Merges the list of webhooks by name, so that everything else in them stays as the operator wrote it.
    contentType: "application/strategic-merge-patch+json",
    body: {
      metadata: { resourceVersion },
      webhooks: stale.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } })),
    },
  });
  return "written";
}

interface Configuration {
  readonly metadata: { readonly resourceVersion: string };
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
}

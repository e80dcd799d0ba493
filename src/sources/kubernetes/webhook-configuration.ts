/**
 * Writes the certificate authorities of the webhook into the `caBundle` of a ValidatingWebhookConfiguration, so that
 * the API server trusts its certificate. runtime/webhook.ts applies whole configurations instead; only test/cluster
 * uses this patch.
 */
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

const COLLECTION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/**
 * Sets the bundle of every webhook of one configuration; writes only when it differs.
 * @param pem one or more certificates
 * @throws ApiError, also when the configuration was changed in between
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
    // A strategic merge patch merges the list of webhooks by name, so all other fields stay as the operator wrote them.
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

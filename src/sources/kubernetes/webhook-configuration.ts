/**
 * Writes the certificate authorities of the webhook into the `caBundle` of a ValidatingWebhookConfiguration that a chart
 * renders, so that the API server trusts its certificate. runtime/webhook.ts uses it; without a chart it applies whole
 * configurations instead.
 */
import type { Clock } from "../../lib/time/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

const COLLECTION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

interface CaBundleOptions {
  readonly client: KubernetesClient;
  /** Name of the configuration. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Logger;
}

interface CaBundleKeeper {
  /**
   * Sets the bundle of every webhook of the configuration. A configuration that does not exist yet gets it once it does.
   * @param pem one or more certificates
   * @throws ApiError when the API server cannot be reached, refuses, or has a newer version
   */
  publish(pem: string): Promise<void>;
  stop(): void;
}

/**
 * Interval at which a bundle that is missing is noticed. While it is missing, the API server refuses every object that
 * the webhook has to see: at the installation, where Helm creates the configuration after the pods, and when somebody
 * replaces the configuration.
 */
const CHECK_MS = 5_000;

export function keepCaBundle({ client, name, clock, log }: CaBundleOptions): CaBundleKeeper {
  let latest: string | undefined;
  let lastWarning = "";
  let cancel = (): void => undefined;
  let isStopped = false;

  function warnOnce(message: string): void {
    if (message !== lastWarning) log.warn("the webhook is not registered", { configuration: name, error: message });
    lastWarning = message;
  }

  /**
   * Fills in a bundle that is missing, and no other: after a rotation by another replica this one holds an older bundle
   * until it has read the Secret again.
   */
  async function check(): Promise<void> {
    const current = latest === undefined ? undefined : await read(client, name);
    if (latest === undefined || isStopped) return;
    if (current === undefined) return warnOnce("it does not exist");
    if (current.webhooks?.some(({ clientConfig }) => (clientConfig.caBundle ?? "") === "") === true)
      await write(client, current, latest);
    lastWarning = "";
  }

  function plan(): void {
    cancel();
    if (isStopped) return;
    cancel = clock.after(CHECK_MS, () => {
      void check()
        .catch((error: unknown) => warnOnce(messageOf(error)))
        .then(plan);
    });
  }

  return {
    async publish(pem) {
      latest = pem;
      plan();
      const current = await read(client, name);
      if (current === undefined) warnOnce("it does not exist");
      else await write(client, current, pem);
    },
    stop() {
      isStopped = true;
      cancel();
    },
  };
}

interface Configuration {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
}

async function read(client: KubernetesClient, name: string): Promise<Configuration | undefined> {
  try {
    const path = `${COLLECTION}/${encodeURIComponent(name)}`;
    return (await client.request({ method: "GET", path })) as Configuration; // the API server validated its shape
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Writes only the webhooks whose bundle differs. */
async function write(client: KubernetesClient, current: Configuration, pem: string): Promise<void> {
  const caBundle = Buffer.from(pem).toString("base64");
  const stale = (current.webhooks ?? []).filter(({ clientConfig }) => clientConfig.caBundle !== caBundle);
  if (stale.length === 0) return;
  const { name, resourceVersion } = current.metadata;
  await client.request({
    method: "PATCH",
    path: `${COLLECTION}/${encodeURIComponent(name)}`,
    // A strategic merge patch merges the list of webhooks by name, so all other fields stay as the operator wrote them.
    contentType: "application/strategic-merge-patch+json",
    body: {
      metadata: { resourceVersion },
      webhooks: stale.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } })),
    },
  });
}

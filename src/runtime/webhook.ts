/**
 * Runs `gwproxy webhook`: the validating webhook, which issues its own certificates. They are kept in a Secret that the
 * replicas share. The ValidatingWebhookConfiguration is applied with the current authority before any server uses a
 * leaf of it; of one that a chart renders only the authority is written.
 */
import type { WebhookOptions } from "./options.ts";
import { KINDS } from "../../generated/kinds.ts";
import { Certificates } from "../admission/certificates.ts";
import { startReviewThreads } from "../admission/review-threads.ts";
import { startWebhookServer } from "../admission/server.ts";
import { type WebhookTarget, webhookConfiguration } from "../admission/webhook-configuration.ts";
import { systemClock } from "../lib/time/clock.ts";
import { FatalError } from "../lib/errors.ts";
import { createCertificateStore } from "../sources/kubernetes/certificate-store.ts";
import { createKubernetesClient, type KubernetesClient } from "../sources/kubernetes/client.ts";
import { findOwner } from "../sources/kubernetes/owner.ts";
import { createSecretStore } from "../sources/kubernetes/secret-store.ts";
import { keepCaBundle } from "../sources/kubernetes/webhook-configuration.ts";
import { checkOwnPorts } from "./own-ports.ts";
import { createProcessLog, stopSignal } from "./process.ts";

const CONFIGURATION_NAME = "gwproxy";
const SECRET_NAME = "gwproxy-webhook-cert";
const FIELD_MANAGER = "gwproxy-webhook";

export async function runWebhook(options: WebhookOptions): Promise<void> {
  const { log } = createProcessLog(options.logLevel);
  const { target, names } = targetOf(options);
  await checkOwnPorts({ "--address": options.address });
  const client = await createKubernetesClient(options.kubeconfig);
  const { namespace, configuration, deploymentName } = options;
  const owner = await findOwner(client, namespace, deploymentName);
  const secret = { namespace, name: SECRET_NAME, type: "Opaque", owner };
  const rendered =
    configuration === undefined
      ? undefined
      : keepCaBundle({ client, name: configuration, clock: systemClock, log: log.child("certificates") });
  const certificates = new Certificates({
    store: createCertificateStore(createSecretStore(client, secret)),
    names,
    patchCaBundle: rendered?.publish ?? ((pem) => applyConfiguration(client, target, pem)),
    clock: systemClock,
    log: log.child("certificates"),
  });
  const reviews = await startReviewThreads({ log: log.child("review") });
  const server = await startWebhookServer({
    ...options.address,
    certificate: await certificates.start(),
    review: (body) => reviews.review(body),
    log: log.child("webhook"),
  });
  certificates.onRenewal((leaf) => server.useCertificate(leaf));
  log.info("validating", { address: `${options.address.host}:${server.address.port}` });
  await stopSignal();
  certificates.stop();
  rendered?.stop();
  await server.stop();
  await reviews.close();
}

/** Returns the address at which the API server reaches the webhook, and the names that its certificate must contain. */
function targetOf({ service, url }: WebhookOptions): {
  readonly target: WebhookTarget;
  readonly names: readonly string[];
} {
  if (service !== undefined && url === undefined) {
    const [namespace = "", name = ""] = service.split("/");
    return {
      target: { service: { namespace, name } },
      names: [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`],
    };
  }
  if (url !== undefined && service === undefined) {
    return { target: { url }, names: [new URL(url).hostname.replace(/^\[|\]$/g, "")] };
  }
  throw new FatalError("name exactly one of --service and --url, so that the API server can find the webhook", 2);
}

async function applyConfiguration(client: KubernetesClient, target: WebhookTarget, caPem: string): Promise<void> {
  const resources = KINDS.filter(({ owned }) => owned).map(({ plural }) => plural);
  await client.request({
    method: "PATCH",
    path: `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${CONFIGURATION_NAME}`,
    query: { fieldManager: FIELD_MANAGER, force: "true" },
    contentType: "application/apply-patch+yaml",
    body: webhookConfiguration(CONFIGURATION_NAME, target, resources, caPem),
  });
}

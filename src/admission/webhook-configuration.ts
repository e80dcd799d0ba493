/**
 * Renders the ValidatingWebhookConfiguration of the webhook: for our kinds only, failing closed, and never for status
 * writes.
 */
const WEBHOOK_NAME = "validate.gwproxy.dev";
const API_GROUP = "gwproxy.dev";

export interface WebhookTarget {
  readonly service?: { readonly name: string; readonly namespace: string; readonly port?: number };
  /** URL for an API server that reaches the webhook without a Service. */
  readonly url?: string;
}

/**
 * @param resources plural names of our kinds
 * @param caBundle PEM text; "" while it is not known yet
 */
export function webhookConfiguration(
  name: string,
  target: WebhookTarget,
  resources: readonly string[],
  caBundle: string,
): object {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name, labels: { "app.kubernetes.io/name": "gwproxy" } },
    webhooks: [
      {
        name: WEBHOOK_NAME,
        clientConfig: {
          ...clientAddress(target),
          ...(caBundle === "" ? {} : { caBundle: Buffer.from(caBundle, "utf8").toString("base64") }),
        },
        // Plural names without "/status", because status writes need no admission.
        rules: [
          {
            apiGroups: [API_GROUP],
            apiVersions: ["*"],
            operations: ["CREATE", "UPDATE"],
            resources: [...resources].sort(),
            scope: "*",
          },
        ],
        matchConditions: [
          { name: "not-status", expression: '!has(request.subResource) || request.subResource != "status"' },
        ],
        failurePolicy: "Fail",
        matchPolicy: "Equivalent",
        sideEffects: "None",
        timeoutSeconds: 5,
        admissionReviewVersions: ["v1"],
      },
    ],
  };
}

function clientAddress({ service, url }: WebhookTarget): object {
  if (url !== undefined) return { url };
  if (service === undefined) throw new TypeError("a webhook needs a service or a url");
  return {
    service: { name: service.name, namespace: service.namespace, path: "/validate", port: service.port ?? 443 },
  };
}

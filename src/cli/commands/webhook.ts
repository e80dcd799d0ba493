/** `gwproxy webhook` runs the validating admission webhook of our kinds. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { WebhookOptions } from "../../runtime/options.ts";
import { type Command, Option } from "commander";
import { addressOption, logLevelOption, namespacedName } from "./options.ts";

const EXAMPLES = `
Examples:
  gwproxy webhook --service gwproxy-system/gwproxy-webhook
  gwproxy webhook --address 127.0.0.1:9443 --url https://127.0.0.1:9443/validate

It makes its own certificates, keeps them in the Secret gwproxy-webhook-cert, renews them before they expire and keeps the
caBundle of the ValidatingWebhookConfiguration current. The chart renders the configuration and names it with --configuration.
`;

export function addWebhookCommand(program: Command, _terminal: Terminal): void {
  program
    .command("webhook")
    .description("refuse objects of our kinds that the schema alone cannot refuse")
    .option("-k, --kubeconfig <file>", "kubeconfig; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .addOption(addressOption("--address <host:port>", "where the API server connects", ":9443"))
    .addOption(
      new Option("--namespace <name>", "namespace of the certificate Secret")
        .default("gwproxy-system")
        .env("POD_NAMESPACE"),
    )
    .option("--service <namespace/name>", "Service in front of this process", namespacedName)
    .option("--url <url>", "address for the API server where there is no Service")
    .option(
      "--configuration <name>",
      "ValidatingWebhookConfiguration whose caBundle is kept current; default: a whole one is applied as gwproxy",
      textOrNone,
    )
    .addOption(
      new Option("--deployment-name <name>", "Deployment of the webhook: it owns the Secret of the certificates")
        .argParser(textOrNone)
        .env("GWPROXY_DEPLOYMENT_NAME"),
    )
    .addOption(logLevelOption().env("GWPROXY_LOG_LEVEL"))
    .addHelpText("after", EXAMPLES)
    .action(async (options: WebhookOptions) => {
      const { runWebhook } = await import("../../runtime/webhook.ts");
      await runWebhook(options);
    });
}

/** Treats an empty value as unset, as in a template whose value is missing. */
function textOrNone(text: string): string | undefined {
  return text === "" ? undefined : text;
}

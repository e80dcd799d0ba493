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
caBundle of the ValidatingWebhookConfiguration current.
`;

export function addWebhookCommand(program: Command, _terminal: Terminal): void {
  program
    .command("webhook")
    .description("refuse objects of our kinds that the schema alone cannot refuse")
    .option("-k, --kubeconfig <file>", "kubeconfig; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .addOption(addressOption("--address <host:port>", "where the API server connects", "0.0.0.0:9443"))
    .addOption(
      new Option("--namespace <name>", "namespace of the certificate Secret")
        .default("gwproxy-system")
        .env("POD_NAMESPACE"),
    )
    .option("--service <namespace/name>", "Service in front of this process", namespacedName)
    .option("--url <url>", "address for the API server where there is no Service")
    .addOption(logLevelOption().env("GWPROXY_LOG_LEVEL"))
    .addHelpText("after", EXAMPLES)
    .action(async (options: WebhookOptions) => {
      const { runWebhook } = await import("../../runtime/webhook.ts");
      await runWebhook(options);
    });
}

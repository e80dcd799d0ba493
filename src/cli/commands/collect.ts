/** `gwproxy collect` writes a support bundle. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import type { CollectOptions } from "../collect/collect.ts";
import { DEFAULT_PORTS } from "../pods/default-ports.ts";
import { addPodOptions, portOption } from "./pod-options.ts";

const EXAMPLES = `
Examples:
  gwproxy collect
  gwproxy collect -o bundle/ --kubeconfig ~/.kube/staging
  gwproxy collect --local -o bundle/

The folder holds the objects of the Gateway API and of gwproxy with their statuses, Events, logs, metrics, dumps and versions.
Secrets are masked. CONTENTS.txt lists what is there and what could not be read; look through it before you send it.
`;

export function addCollectCommand(program: Command, terminal: Terminal): void {
  addPodOptions(program.command("collect"), false)
    .description("write a support bundle: objects, statuses, Events, logs, metrics and dumps, secrets masked")
    .option("-o, --output <dir>", "folder of the bundle", "gwproxy-bundle")
    .addOption(portOption("--metrics-port <port>", "port of the metrics server", DEFAULT_PORTS.proxyMetrics))
    .addOption(
      portOption(
        "--controller-metrics-port <port>",
        "port of the metrics server of controllers",
        DEFAULT_PORTS.controllerMetrics,
      ),
    )
    .addHelpText("after", EXAMPLES)
    .action(async (options: CollectOptions) => {
      const { collect } = await import("../collect/collect.ts");
      await collect(options, terminal);
    });
}

/** `gwproxy controller`: watches a cluster, writes status and serves data planes. */
import type { Command } from "commander";
import type { Terminal } from "../output.ts";
import { type Address, address, logFilter } from "./options.ts";

export interface ControllerOptions {
  readonly kubeconfig: string | undefined;
  readonly xdsAddress: Address;
  /** PEM files; both or none. None: data planes are served in plaintext. */
  readonly xdsTlsCert: string | undefined;
  readonly xdsTlsKey: string | undefined;
  readonly healthAddress: Address;
  readonly controllerName: string;
  readonly className: string;
  readonly logLevel: string;
}

const EXAMPLES = `
Examples:
  gwproxy controller
  gwproxy controller --kubeconfig ~/.kube/config --xds-address 127.0.0.1:9978
  gwproxy controller --xds-tls-cert tls.crt --xds-tls-key tls.key

Settings are also read from the environment: GWPROXY_LOG_LEVEL, GWPROXY_CONTROLLER_NAME, GWPROXY_CLASS_NAME.
`;

export function addControllerCommand(program: Command, _terminal: Terminal): void {
  const env = process.env;
  program
    .command("controller")
    .description("watch a cluster, translate, write status and serve data planes")
    .option("-k, --kubeconfig <file>", "kubeconfig; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .option("--xds-address <host:port>", "where data planes connect", address, address("0.0.0.0:9978"))
    .option("--xds-tls-cert <file>", "PEM certificate for data planes, leaf first; default: plaintext")
    .option("--xds-tls-key <file>", "PEM key of the certificate")
    .option("--health-address <host:port>", "/readyz and /healthz", address, address("0.0.0.0:9093"))
    .option(
      "--controller-name <name>",
      "controllerName of the GatewayClasses that are ours",
      env["GWPROXY_CONTROLLER_NAME"] ?? "gwproxy.dev/gwproxy",
    )
    .option(
      "--class-name <name>",
      "GatewayClass that is created when it is missing",
      env["GWPROXY_CLASS_NAME"] ?? "gwproxy",
    )
    .option(
      "--log-level <filter>",
      "off, error, warn, info, debug or trace",
      logFilter,
      env["GWPROXY_LOG_LEVEL"] ?? "info",
    )
    .addHelpText("after", EXAMPLES)
    .action(async (options: ControllerOptions, command: Command) => {
      if ((options.xdsTlsCert === undefined) !== (options.xdsTlsKey === undefined))
        command.error("error: --xds-tls-cert and --xds-tls-key belong together; set both or none");
      const { runController } = await import("../run/controller.ts");
      await runController(options);
    });
}

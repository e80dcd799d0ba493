/** The options of commands that ask data planes or controllers, in a cluster or on this machine. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_PORTS } from "../pods/default-ports.ts";

/** @param takesResource false for commands that name what they show in another way */
export function addPodOptions(command: Command, takesResource = true): Command {
  if (takesResource)
    command.argument(
      "[resource]",
      "gateway/NAME, controller/NAME, deploy/NAME, … or a pod; .NAMESPACE may follow; default: the only Gateway of the namespace",
    );
  return command
    .option("-n, --namespace <name>", "namespace; default: that of the kubeconfig's context")
    .option("-k, --kubeconfig <file>", "kubeconfig; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .option("--local", "ask the data plane on this machine, such as `gwproxy up`")
    .addOption(portOption("--proxy-admin-port <port>", "port of the admin server", DEFAULT_PORTS.proxyAdmin))
    .addOption(
      portOption(
        "--controller-admin-port <port>",
        "port of the admin server of controllers",
        DEFAULT_PORTS.controllerAdmin,
      ),
    )
    .addOption(
      new Option("--admin-token-file <file>", "file with the token of the admin server").env("ADMIN_TOKEN_FILE"),
    );
}

export function portOption(flags: string, description: string, standard: number): Option {
  return new Option(flags, description).argParser(port).default(standard, String(standard));
}

function port(text: string): number {
  const number = Number(text);
  if (/^\d{1,5}$/.test(text) && number >= 1 && number <= 65_535) return number;
  throw new InvalidArgumentError("give a port from 1 to 65535");
}

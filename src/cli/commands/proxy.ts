/** `gwproxy proxy`: a data plane of one Gateway. */
import type { Command } from "commander";
import type { Terminal } from "../output.ts";
import { addDataPlaneOptions, type Address, address, type DataPlaneOptions, namespacedName } from "./options.ts";

export interface ProxyOptions extends DataPlaneOptions {
  readonly xdsAddress: Address;
  readonly gateway: string;
}

const EXAMPLES = `
Examples:
  gwproxy proxy --xds-address 127.0.0.1:9978 --gateway default/quickstart
  XDS_ADDRESS=http://gwproxy.gwproxy-system:9978 POD_NAMESPACE=default GATEWAY=quickstart gwproxy proxy

It is ready when the first whole configuration has arrived, and keeps serving when the controller is gone.
`;

export function addProxyCommand(program: Command, terminal: Terminal): void {
  const { XDS_ADDRESS, POD_NAMESPACE, GATEWAY } = process.env;
  const command = program
    .command("proxy")
    .description("serve the traffic of one Gateway, configured by a controller")
    .requiredOption(
      "--xds-address <host:port>",
      "controller",
      xdsAddress,
      XDS_ADDRESS === undefined ? undefined : xdsAddress(XDS_ADDRESS),
    )
    .requiredOption(
      "--gateway <namespace/name>",
      "Gateway to serve",
      namespacedName,
      GATEWAY === undefined ? undefined : `${POD_NAMESPACE ?? "default"}/${GATEWAY}`,
    );
  addDataPlaneOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (options: ProxyOptions) => {
      const { runProxy } = await import("../run/proxy.ts");
      await runProxy(options, terminal);
    });
}

function xdsAddress(text: string): Address {
  return address(text.replace(/^http:\/\//, ""));
}

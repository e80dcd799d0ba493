/** `gwproxy proxy`: a data plane of one Gateway. */
import { type Command, InvalidArgumentError } from "commander";
import type { Terminal } from "../output.ts";
import { addDataPlaneOptions, address, type DataPlaneOptions, namespacedName } from "./options.ts";

export interface ProxyOptions extends DataPlaneOptions {
  /** "host:port", which takes TLS when a CA is named, or the same behind http:// or https://. */
  readonly xdsAddress: string;
  /** PEM file of the authorities that may sign the controller's certificate; unset: those of the system. */
  readonly xdsCa: string | undefined;
  readonly gateway: string;
}

const EXAMPLES = `
Examples:
  gwproxy proxy --xds-address 127.0.0.1:9978 --gateway default/quickstart
  gwproxy proxy --xds-address https://gwproxy.gwproxy-system:9978 --xds-ca ca.crt --gateway default/quickstart
  XDS_ADDRESS=http://gwproxy.gwproxy-system:9978 POD_NAMESPACE=default GATEWAY=quickstart gwproxy proxy

It is ready when the first whole configuration has arrived, and keeps serving when the controller is gone.
`;

export function addProxyCommand(program: Command, terminal: Terminal): void {
  const { XDS_ADDRESS, XDS_ROOT_CA, POD_NAMESPACE, GATEWAY } = process.env;
  const command = program
    .command("proxy")
    .description("serve the traffic of one Gateway, configured by a controller")
    .requiredOption(
      "--xds-address <address>",
      "controller: https://HOST:PORT, http://HOST:PORT, or HOST:PORT, which takes TLS when --xds-ca is set",
      xdsAddress,
      XDS_ADDRESS === undefined ? undefined : xdsAddress(XDS_ADDRESS),
    )
    .option(
      "--xds-ca <file>",
      "PEM file of the authorities to trust for the controller; default: those of the system",
      XDS_ROOT_CA === "" ? undefined : XDS_ROOT_CA,
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

function xdsAddress(text: string): string {
  const [, scheme = "", rest = ""] = /^(https?:\/\/)?(.*?)\/?$/.exec(text) ?? [];
  const { host, port } = address(rest);
  if (host === "" || host.includes("/")) throw new InvalidArgumentError(`"${text}" names no host`);
  return `${scheme}${host.includes(":") ? `[${host}]` : host}:${port}`;
}

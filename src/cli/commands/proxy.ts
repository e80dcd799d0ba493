/** `gwproxy proxy` runs a data plane of one Gateway. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { DataPlaneSettings } from "../../api/data-plane-settings.ts";
import type { ProxyOptions } from "../../runtime/options.ts";
import { existsSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { TOKEN_FILE } from "../../api/data-plane.ts";
import { addDataPlaneOptions, hostPort, namespacedName } from "./options.ts";

const XDS_ADDRESS = "controller: https://HOST:PORT, http://HOST:PORT, or HOST:PORT, which takes TLS with --xds-ca";

/** Path of the token in a pod that the controller deployed for a Gateway. */
const MOUNTED_TOKEN = `/var/run/secrets/xds-tokens/${TOKEN_FILE}`;

const EXAMPLES = `
Examples:
  gwproxy proxy --xds-address 127.0.0.1:9978 --gateway default/quickstart
  kubectl create serviceaccount quickstart && kubectl create token quickstart --audience gwproxy > token
  gwproxy proxy --xds-address https://gwproxy.gwproxy-system:9978 --xds-ca ca.crt --xds-token token --gateway default/quickstart
  XDS_ADDRESS=http://gwproxy.gwproxy-system:9978 POD_NAMESPACE=default GATEWAY=quickstart gwproxy proxy

It is ready when the first whole configuration has arrived, and keeps serving when the controller is gone.
`;

export function addProxyCommand(program: Command, terminal: Terminal): void {
  const { POD_NAMESPACE, GATEWAY } = process.env;
  const command = program
    .command("proxy")
    .description("serve the traffic of one Gateway, configured by a controller")
    .addOption(
      new Option("--xds-address <address>", XDS_ADDRESS).argParser(xdsAddress).env("XDS_ADDRESS").makeOptionMandatory(),
    )
    .addOption(
      new Option(
        "--xds-ca <file>",
        "PEM file of the authorities to trust for the controller; default: the system's",
      ).env("XDS_ROOT_CA"),
    )
    .option(
      "--xds-token <file>",
      `service-account token for the controller, audience gwproxy; default: ${MOUNTED_TOKEN} where it exists`,
      existsSync(MOUNTED_TOKEN) ? MOUNTED_TOKEN : undefined,
    )
    .option(
      "-f, --config <file>",
      "YAML file of settings, as pods have it at /config/config.yaml; flags and variables win over it",
    )
    .addOption(
      new Option("--gateway <namespace/name>", "Gateway to serve; also from POD_NAMESPACE and GATEWAY")
        .argParser(namespacedName)
        .default(GATEWAY === undefined ? undefined : `${POD_NAMESPACE ?? "default"}/${GATEWAY}`)
        .makeOptionMandatory(),
    );
  addDataPlaneOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (options: ProxyOptions & { readonly config?: string }, command: Command) => {
      const { runProxy } = await import("../../runtime/proxy.ts");
      await runProxy({ ...options, ...(await settingsOf(options.config, command)) }, terminal);
    });
}

/** Returns what the settings file decides: flags and variables win over it. */
async function settingsOf(path: string | undefined, command: Command): Promise<Partial<DataPlaneSettings>> {
  if (path === undefined) return {};
  const { readConfigFile } = await import("../../runtime/proxy-config.ts");
  const isSet = (name: string): boolean => !["default", undefined].includes(command.getOptionValueSource(name));
  return Object.fromEntries(Object.entries(await readConfigFile(path)).filter(([name]) => !isSet(name)));
}

function xdsAddress(text: string): string {
  const [, scheme = "", rest = ""] = /^(https?:\/\/)?(.*?)\/?$/.exec(text) ?? [];
  const { host, port } = hostPort(rest);
  if (host === "" || host.includes("/")) throw new InvalidArgumentError(`"${text}" names no host`);
  return `${scheme}${host.includes(":") ? `[${host}]` : host}:${port}`;
}

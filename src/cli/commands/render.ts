/** `gwproxy render` prints what the controller would deploy for the Gateways of some manifests. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import { type Command, Option } from "commander";
import type { RenderOptions } from "../render.ts";
import { addDeploymentOptions, addMeshOptions, classParametersRefs } from "./deployment-options.ts";
import { addManifestPaths, manifestPaths, namespacedName, outputOption } from "./options.ts";

const EXAMPLES = `
Examples:
  gwproxy render -f manifests/
  gwproxy render -f gateway.yaml -f parameters.yaml --gateway team/edge -o json
  gwproxy render -f manifests/ | kubectl diff --server-side --force-conflicts -f -
  GWPROXY_PROXY_IMAGE_REGISTRY=registry.example.com gwproxy render -f manifests/

Objects are printed in the order in which the controller applies them. What only a cluster knows is <generated>: keys, the
authority of the controller, and checksums of both; owners are left out where a Gateway has no uid.

Exit code: 0 when everything could be rendered, 1 when the status of a Gateway would say why it is not deployed, 2 when the
files could not be read.
`;

export function addRenderCommand(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  const command = addManifestPaths(program.command("render"))
    .description("print the objects that the controller would apply for each Gateway, without a cluster")
    .addOption(outputOption("yaml documents, or one json list", ["yaml", "json"]))
    .addOption(new Option("--gateway <namespace/name>", "only this Gateway").argParser(namespacedName))
    .addOption(
      new Option("--xds-mode <mode>", "how data planes reach the controller")
        .choices(["plaintext", "tls", "either"])
        .default("tls")
        .env("GWPROXY_XDS_MODE"),
    )
    .addOption(
      new Option("--controller-name <name>", "controllerName of the GatewayClasses that are ours")
        .default("gwproxy.dev/gwproxy")
        .env("GWPROXY_CONTROLLER_NAME"),
    )
    .addOption(
      new Option("--gateway-class-parameters-refs <json>", "GwParameters of the class where the files do not hold it")
        .argParser(classParametersRefs)
        .default({}, "none")
        .env("GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS"),
    );
  addMeshOptions(addDeploymentOptions(command))
    .addHelpText("after", EXAMPLES)
    .action(async (paths: readonly string[], options: RenderOptions, own: Command) => {
      const file = manifestPaths(own, paths, options);
      const { runRender } = await import("../render.ts");
      setExitCode(await runRender({ ...options, file }, terminal));
    });
}

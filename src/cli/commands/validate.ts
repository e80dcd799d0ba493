/** `gwproxy validate` prints every diagnostic of some manifests with its position. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import { addManifestPaths, inferenceOption, manifestPaths, outputOption } from "./options.ts";
import type { ValidateOptions } from "../validate/validate.ts";

const EXAMPLES = `
Examples:
  gwproxy validate -f manifests/
  gwproxy validate -f gateway.yaml -f routes.yaml -o json
  gwproxy validate manifests/*.yaml --strict
  kustomize build overlays/production | gwproxy validate -f -
  gwproxy validate -f manifests/ -o sarif > gwproxy.sarif
  gwproxy validate -f manifests/ --server --context staging

With --server each object is also sent to a cluster's API server as a dry run, which stores nothing; each problem then
says who found it. Colours are for terminals; NO_COLOR switches them off.

Exit code: 0 when there is no error (warnings alone count as none without --strict), 1 when there is one, 2 when the files
could not be read or the API server could not be asked.
`;

export function addValidateCommand(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  addManifestPaths(program.command("validate"))
    .description("check manifests as the API server and the webhook would")
    .addOption(outputOption("text, json or sarif (2.1.0)", ["text", "json", "sarif"]))
    .option("--strict", "warnings count as errors", false)
    .option("--schema-only", "check each object by itself: references to others may lead nowhere", false)
    .addOption(inferenceOption())
    .option("--server", "ask a cluster's API server too; nothing is stored", false)
    .option("-k, --kubeconfig <file>", "with --server; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .option("--context <name>", "with --server: context of the kubeconfig; default: the current one")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: readonly string[], options: ValidateOptions, command: Command) => {
      const file = manifestPaths(command, paths, options);
      if (!options.server && (options.kubeconfig !== undefined || options.context !== undefined))
        command.error("error: --kubeconfig and --context say which cluster --server asks; add --server");
      const { runValidate } = await import("../validate/validate.ts");
      setExitCode(await runValidate({ ...options, file }, terminal));
    });
}

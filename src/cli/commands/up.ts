/** `gwproxy up` serves files in one process. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { UpOptions } from "../../runtime/options.ts";
import type { Command } from "commander";
import { addDataPlaneOptions, addManifestPaths, inferenceOption, manifestPaths, outputOption } from "./options.ts";

const EXAMPLES = `
Examples:
  gwproxy up -f examples/quickstart
  gwproxy up -f gateway.yaml -f routes/ --bind-address 127.0.0.1
  gwproxy up manifests/*.yaml
  gwproxy up -f 'manifests/*/*.yaml'            in quotes: files that are added later are served too
  helm template my-chart | gwproxy up -f -
  gwproxy up -f manifests/ -o json | jq .

Every Gateway of the class gwproxy is served on the ports that it names. Files are watched; Ctrl-C drains and stops.

Exit code: 0 after Ctrl-C or SIGTERM, 1 when a port of its own is taken or a second signal ends it at once, 2 when an option
is wrong or a path leads nowhere.
`;

export function addUpCommand(program: Command, terminal: Terminal): void {
  const command = addManifestPaths(program.command("up"))
    .description("serve the manifests of some files and folders, without a cluster")
    .addOption(outputOption("text or json (one object a line)", ["text", "json"]))
    .addOption(inferenceOption());
  addDataPlaneOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (paths: readonly string[], options: UpOptions, command: Command) => {
      const file = manifestPaths(command, paths, options);
      const { runUp } = await import("../../runtime/up.ts");
      await runUp({ ...options, file }, terminal);
    });
}

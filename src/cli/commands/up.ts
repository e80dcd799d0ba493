/** `gwproxy up`: files to traffic in one process. */
import type { Command } from "commander";
import type { Terminal } from "../output.ts";
import { addDataPlaneOptions, choice, collect, type DataPlaneOptions } from "./options.ts";

export interface UpOptions extends DataPlaneOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json";
}

const EXAMPLES = `
Examples:
  gwproxy up -f examples/quickstart
  gwproxy up -f gateway.yaml -f routes/ --bind-address 127.0.0.1
  gwproxy up -f manifests/ -o json | jq .

Every Gateway of the class gwproxy is served on the ports that it names. Files are watched; Ctrl-C drains and stops.
`;

export function addUpCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command("up")
    .description("serve the manifests of some files and folders, without a cluster")
    .requiredOption("-f, --file <path>", "file or folder with manifests; may be repeated", collect)
    .option("-o, --output <form>", "text or json (one object a line)", choice("text", "json"), "text");
  addDataPlaneOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (options: UpOptions) => {
      const { runUp } = await import("../run/up.ts");
      await runUp(options, terminal);
    });
}

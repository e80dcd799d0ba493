/** `gwproxy version` prints the versions of gwproxy and of Node.js. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import { printStructured } from "../output.ts";
import { VERSION } from "../../lib/version.ts";
import { outputOption } from "./options.ts";

/** The text of `--version` and of `gwproxy version`. */
export const VERSION_LINE: string = `gwproxy ${VERSION} (Node.js ${process.versions.node})`;

export function addVersionCommand(program: Command, terminal: Terminal): void {
  program
    .command("version")
    .description("print the version of gwproxy and of the runtime below it")
    .addOption(outputOption("text, json or yaml", ["text", "json", "yaml"]))
    .addHelpText("after", "\nExamples:\n  gwproxy version\n  gwproxy version -o json\n")
    .action((options: { output: string }) => {
      const value = { version: VERSION, node: process.versions.node };
      if (options.output === "json" || options.output === "yaml") terminal.out(printStructured(value, options.output));
      else terminal.out(`${VERSION_LINE}\n`);
    });
}

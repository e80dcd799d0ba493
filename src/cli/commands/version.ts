/** `gwproxy version` */
import type { Command } from "commander";
import { printStructured, type Terminal } from "../output.ts";
import { VERSION } from "../version.ts";

export function addVersionCommand(program: Command, terminal: Terminal): void {
  program
    .command("version")
    .description("print the version of gwproxy and of the runtime below it")
    .option("-o, --output <form>", "text, json or yaml", "text")
    .addHelpText("after", "\nExamples:\n  gwproxy version\n  gwproxy version -o json\n")
    .action((options: { output: string }) => {
      const value = { version: VERSION, node: process.versions.node };
      if (options.output === "json" || options.output === "yaml") terminal.out(printStructured(value, options.output));
      else terminal.out(`gwproxy ${VERSION} (Node.js ${process.versions.node})\n`);
    });
}

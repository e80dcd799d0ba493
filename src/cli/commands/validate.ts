/** `gwproxy validate`: every fault of some manifests, with its place. */
import type { Command } from "commander";
import type { Terminal } from "../output.ts";
import { choice, collect } from "./options.ts";

export interface ValidateOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json";
  readonly strict: boolean;
}

const EXAMPLES = `
Examples:
  gwproxy validate -f manifests/
  gwproxy validate -f gateway.yaml -f routes.yaml -o json
  gwproxy validate -f manifests/ --strict

Exit code: 0 when there is no error (warnings alone count as none without --strict), 1 when there is one, 2 when the files
could not be read.
`;

export function addValidateCommand(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  program
    .command("validate")
    .description("check manifests as the API server and the webhook would")
    .requiredOption("-f, --file <path>", "file or folder with manifests; may be repeated", collect)
    .option("-o, --output <form>", "text or json", choice("text", "json"), "text")
    .option("--strict", "warnings count as errors", false)
    .addHelpText("after", EXAMPLES)
    .action(async (options: ValidateOptions) => {
      const { runValidate } = await import("../run/validate.ts");
      setExitCode(await runValidate(options, terminal));
    });
}

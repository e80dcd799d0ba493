/** `gwproxy generate types` writes TypeScript types and validators for any structural CRD. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import { type Command, Option } from "commander";
import { addManifestPaths, manifestPaths } from "./options.ts";
import type { GenerateTypesOptions } from "../generate-types.ts";

const EXAMPLES = `
Examples:
  gwproxy generate types -f crds/gwproxy.dev_gwpolicies.yaml -o src/generated
  gwproxy generate types crds/*.yaml -o src/generated
  gwproxy generate types -f some-crd.yaml --only types > some.ts
  kubectl get crd httproutes.gateway.networking.k8s.io -o yaml | gwproxy generate types -f -

For each served version of each kind there are three files: <group>/<kind>.<version>.ts with the types, .validator.js, which needs
no package, and .validator.d.ts. Rules in CEL are left to the API server. Exit code: 1 when a CRD is not structural, with the path
of each error; 2 when a file could not be read or written.
`;

export function addGenerateCommand(program: Command, terminal: Terminal): void {
  const generate = program.command("generate").description("generate code from CRDs");
  addManifestPaths(generate.command("types"))
    .description("TypeScript types and stand-alone validators for the kinds of any structural CRD")
    .option("-o, --output-dir <dir>", "write files below this folder; default: print them")
    .option("--stdout", "print the files, each behind a line with its name", false)
    .addOption(new Option("--only <what>", "write the one and not the other").choices(["types", "validators"]))
    .addHelpText("after", EXAMPLES)
    .action(async (paths: readonly string[], options: GenerateTypesOptions, command: Command) => {
      const file = manifestPaths(command, paths, options);
      if (options.stdout && options.outputDir !== undefined)
        command.error("error: --stdout prints what --output-dir would write; choose one of them");
      const { runGenerateTypes } = await import("../generate-types.ts");
      await runGenerateTypes({ ...options, file }, terminal);
    });
}

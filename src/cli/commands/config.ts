/** `gwproxy config` shows what a data plane has loaded. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import type { ConfigOptions } from "../pods/config.ts";
import { outputOption } from "./options.ts";
import { addPodOptions } from "./pod-options.ts";

const EXAMPLES = `
Examples:
  gwproxy config all gateway/edge
  gwproxy config backends --local
`;

const EXAMPLES_ALL = `
Examples:
  gwproxy config all gateway/edge -n team
  gwproxy config all gateway/edge.team -o yaml
  gwproxy config all controller/gwproxy.gwproxy-system
  gwproxy config all --local -o json > dump.json
  gwproxy config all -f dump.json
`;

const EXAMPLES_BACKENDS = `
Examples:
  gwproxy config backends gateway/edge
  gwproxy config backends deploy/edge.team --all
  gwproxy config backends -f dump.json -o json

HEALTH goes from 0.00 to 1.00; endpoints without requests are left out, except with --all.
`;

const FORMS = ["short", "json", "yaml"];

export function addConfigCommand(program: Command, terminal: Terminal): void {
  const config = program
    .command("config")
    .description("show what a data plane has loaded, or a controller serves")
    .addHelpText("after", EXAMPLES);
  addPodOptions(config.command("all"))
    .description("show everything that is loaded, secrets masked; short: how much of each kind")
    .addOption(outputOption("short, json or yaml", FORMS))
    .option("-f, --file <file>", "read a dump from a file, or - for standard input")
    .addHelpText("after", EXAMPLES_ALL)
    .action(async (resource: string | undefined, options: ConfigOptions) => {
      const { showConfig } = await import("../pods/config.ts");
      await showConfig(resource, options, terminal);
    });
  addPodOptions(config.command("backends"))
    .description("show the endpoints of Services and AI backends, with health, requests and latency")
    .addOption(outputOption("short, json or yaml", FORMS))
    .option("-f, --file <file>", "read a dump from a file, or - for standard input")
    .option("--all", "endpoints without requests too")
    .addHelpText("after", EXAMPLES_BACKENDS)
    .action(async (resource: string | undefined, options: ConfigOptions) => {
      const { showBackends } = await import("../pods/config.ts");
      await showBackends(resource, options, terminal);
    });
}

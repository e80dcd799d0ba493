/** `gwproxy log` shows and changes the log levels of data planes and controllers. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import type { LogOptions } from "../pods/log.ts";
import { logFilter, outputOption } from "./options.ts";
import { addPodOptions } from "./pod-options.ts";

const EXAMPLES = `
Examples:
  gwproxy log gateway/edge -n team
  gwproxy log gateway/edge --level info,proxy=debug
  gwproxy log gateway/edge --reset
  gwproxy log controller/gwproxy.gwproxy-system --level debug

All pods of the data plane or controller are asked, one after the other. A level lasts until the process ends.
`;

export function addLogCommand(program: Command, terminal: Terminal): void {
  addPodOptions(program.command("log"))
    .description("show or change the log levels of all pods of a data plane or controller")
    .addOption(outputOption("text, json or yaml", ["text", "json", "yaml"]))
    .option("--level <filter>", "off, error, warn, info, debug or trace; module=level is possible", logFilter)
    .option("--reset", "return to the levels of the start")
    .addHelpText("after", EXAMPLES)
    .action(async (resource: string | undefined, options: LogOptions) => {
      const { showLog } = await import("../pods/log.ts");
      await showLog(resource, options, terminal);
    });
}

/**
 * The command line, and the only place where rooms are wired together. In: arguments. Out: an exit code. Commands are
 * loaded when they are called, so that one does not pay for the libraries of another.
 */
import { Command, CommanderError } from "commander";
import { FatalError, messageOf } from "../lib/errors.ts";
import { addControllerCommand } from "./commands/controller.ts";
import { addGenerateCommand } from "./commands/generate.ts";
import { addProxyCommand } from "./commands/proxy.ts";
import { addUpCommand } from "./commands/up.ts";
import { addValidateCommand } from "./commands/validate.ts";
import { addVersionCommand } from "./commands/version.ts";
import { addWebhookCommand } from "./commands/webhook.ts";
import { processTerminal } from "./output.ts";

const COULD_NOT_RUN = 2;

/** @param argv as process.argv @returns the exit code; long-running commands return when they were told to stop */
export async function main(argv: readonly string[]): Promise<number> {
  const terminal = processTerminal;
  const program = new Command("gwproxy")
    .description(
      "Gateway for HTTP services, LLM providers, MCP tool servers and agents, configured with Kubernetes objects",
    )
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .addHelpText("after", "\nStart here:\n  gwproxy up -f examples/quickstart\n  gwproxy validate -f my-manifests/\n");
  let exitCode = 0;
  const setExitCode = (code: number): void => {
    exitCode = code;
  };
  addUpCommand(program, terminal);
  addValidateCommand(program, terminal, setExitCode);
  addGenerateCommand(program, terminal);
  addControllerCommand(program, terminal);
  addProxyCommand(program, terminal);
  addWebhookCommand(program, terminal);
  addVersionCommand(program, terminal);
  try {
    await program.parseAsync([...argv]);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : COULD_NOT_RUN;
    terminal.err(`gwproxy: ${messageOf(error)}\n`);
    return error instanceof FatalError ? error.exitCode : 1;
  }
}

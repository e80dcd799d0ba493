/**
 * The entry of the command line: parses arguments and returns an exit code. Commands load their modules when they are
 * called, so that one does not pay for the libraries of another.
 */
import { Command, CommanderError } from "commander";
import { FatalError, messageOf } from "../lib/errors.ts";
import { addCollectCommand } from "./commands/collect.ts";
import { addCompletionCommand } from "./commands/completion.ts";
import { addConfigCommand } from "./commands/config.ts";
import { addControllerCommand } from "./commands/controller.ts";
import { addExplainCommand } from "./commands/explain.ts";
import { addGenerateCommand } from "./commands/generate.ts";
import { addLogCommand } from "./commands/log.ts";
import { addProxyCommand } from "./commands/proxy.ts";
import { addRenderCommand } from "./commands/render.ts";
import { addTraceCommand } from "./commands/trace.ts";
import { addUpCommand } from "./commands/up.ts";
import { addValidateCommand } from "./commands/validate.ts";
import { addVersionCommand, VERSION_LINE } from "./commands/version.ts";
import { addWebhookCommand } from "./commands/webhook.ts";
import { processTerminal } from "./output.ts";

const COULD_NOT_RUN = 2;

const NOTES = `
Start here:
  gwproxy up -f examples/quickstart
  gwproxy validate -f my-manifests/
  gwproxy help up

Exit code: 0 when all went well, 1 when a check found an error or a command failed, 2 when a command could not run at all: it
is unknown, an option is wrong, a file cannot be read. The help of a command says what differs.
`;

/**
 * Runs one command. Long-running commands return after they were signalled to stop.
 * @param argv arguments in the form of process.argv
 * @returns the exit code
 */
export async function main(argv: readonly string[]): Promise<number> {
  const terminal = processTerminal;
  const program = new Command("gwproxy")
    .description(
      "Gateway for HTTP services, LLM providers, MCP tool servers and agents, configured with Kubernetes objects",
    )
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .version(VERSION_LINE, "-V, --version", "print the version")
    .showHelpAfterError("(add --help for commands, options and examples)")
    .helpCommand(false)
    .addHelpText("after", NOTES);
  let exitCode = 0;
  const setExitCode = (code: number): void => {
    exitCode = code;
  };
  addUpCommand(program, terminal);
  addValidateCommand(program, terminal, setExitCode);
  addRenderCommand(program, terminal, setExitCode);
  addGenerateCommand(program, terminal);
  addConfigCommand(program, terminal);
  addTraceCommand(program, terminal);
  addExplainCommand(program, terminal);
  addLogCommand(program, terminal);
  addCollectCommand(program, terminal);
  addControllerCommand(program, terminal);
  addProxyCommand(program, terminal);
  addWebhookCommand(program, terminal);
  addCompletionCommand(program, terminal);
  addVersionCommand(program, terminal);
  addHelpCommand(program);
  try {
    await program.parseAsync([...argv]);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : COULD_NOT_RUN;
    terminal.err(`gwproxy: ${messageOf(error)}\n`);
    return error instanceof FatalError ? error.exitCode : 1;
  }
}

/**
 * Adds `gwproxy help generate types`. Unlike commander's own help command it accepts nested commands and refuses
 * unknown ones.
 */
function addHelpCommand(program: Command): void {
  program
    .command("help")
    .description("show the help of a command")
    .argument("[command...]", "command, such as generate types")
    .addHelpText("after", "\nExamples:\n  gwproxy help up\n  gwproxy help generate types\n")
    .action((words: readonly string[]) => {
      let command = program;
      for (const word of words) {
        const next = command.commands.find((child) => child.name() === word);
        if (next === undefined) return void command.parse([word], { from: "user" });
        command = next;
      }
      command.help();
    });
}

/** `gwproxy completion` prints the scripts that complete commands and options in a shell. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import { Argument, type Command } from "commander";
import type { CompletedCommand } from "../completion/table.ts";

const EXAMPLES = `
Examples:
  source <(gwproxy completion bash)                     in ~/.bashrc
  source <(gwproxy completion zsh)                      in ~/.zshrc, after compinit
  gwproxy completion fish | source                      in ~/.config/fish/config.fish
`;

const SCRIPTS: Readonly<Record<string, () => Promise<(table: readonly CompletedCommand[]) => string>>> = {
  bash: async () => (await import("../completion/bash.ts")).bashScript,
  zsh: async () => (await import("../completion/zsh.ts")).zshScript,
  fish: async () => (await import("../completion/fish.ts")).fishScript,
};

export function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command("completion")
    .description("print the script that completes commands and options in a shell")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", EXAMPLES)
    .action(async (shell: string) => {
      const { completionTable } = await import("../completion/table.ts");
      const script = await SCRIPTS[shell]?.();
      if (script !== undefined) terminal.out(script(completionTable(program)));
    });
}

/** What shells complete, read from the commands themselves. Used by the script of each shell. */
import type { Command, Option } from "commander";

export interface CompletedOption {
  /** "-o", "--output" */
  readonly names: readonly string[];
  readonly description: string;
  readonly value: "none" | "any" | "file" | "folder" | readonly string[];
}

export interface CompletedCommand {
  /** Words after the program's name: [] is the program, ["generate", "types"] a command of a command. */
  readonly path: readonly string[];
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** What an argument can be. */
  readonly argument: CompletedOption["value"];
}

/** @returns the program and every command below it, users before what they use */
export function completionTable(command: Command, path: readonly string[] = []): CompletedCommand[] {
  const visible = command.createHelp().visibleCommands(command);
  const own: CompletedCommand = {
    path,
    description: command.description(),
    options: command.createHelp().visibleOptions(command).map(completedOption),
    argument: argumentOf(command),
  };
  // Below the program commander adds a help command to each command of commands; our own is the program's.
  const children = visible.filter((child) => path.length === 0 || child.name() !== "help");
  return [own, ...children.flatMap((child) => completionTable(child, [...path, child.name()]))];
}

/** The commands directly below one. */
export function childrenOf(table: readonly CompletedCommand[], path: readonly string[]): CompletedCommand[] {
  return table.filter(
    (child) => child.path.length === path.length + 1 && path.every((word, at) => child.path[at] === word),
  );
}

function completedOption({ short, long, description, argChoices, flags }: Option): CompletedOption {
  const names = [short, long].filter((name) => name !== undefined);
  const value = argChoices ?? valueOf(/[<[]([^>\]]+)[>\]]/.exec(flags)?.[1]);
  return { names, description, value };
}

function argumentOf(command: Command): CompletedOption["value"] {
  const [first] = command.registeredArguments;
  return first === undefined ? "none" : (first.argChoices ?? valueOf(first.name()));
}

/** @param name of the value in the help, such as "file" */
function valueOf(name: string | undefined): CompletedOption["value"] {
  if (name === undefined) return "none";
  if (name === "true|false") return ["true", "false"];
  if (name === "dir") return "folder";
  return /^(?:file|paths?)/.test(name) ? "file" : "any";
}

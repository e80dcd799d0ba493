/** Reads from the commands themselves what shells complete. The script of each shell is rendered from this table. */
import type { Command, Option } from "commander";

export interface CompletedOption {
  /** Short and long name, such as "-o" and "--output". */
  readonly names: readonly string[];
  readonly description: string;
  readonly value: "none" | "any" | "file" | "folder" | readonly string[];
}

export interface CompletedCommand {
  /** Words after the program's name: [] is the program, ["generate", "types"] a nested command. */
  readonly path: readonly string[];
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Kind of the values that the first argument takes. */
  readonly argument: CompletedOption["value"];
}

/** @returns the program and every command below it, parents before their children */
export function completionTable(command: Command, path: readonly string[] = []): CompletedCommand[] {
  const visible = command.createHelp().visibleCommands(command);
  const own: CompletedCommand = {
    path,
    description: command.description(),
    options: command.createHelp().visibleOptions(command).map(completedOption),
    argument: argumentOf(command),
  };
  // Commander adds a help command to every command with children; only the program's own one is completed.
  const children = visible.filter((child) => path.length === 0 || child.name() !== "help");
  return [own, ...children.flatMap((child) => completionTable(child, [...path, child.name()]))];
}

/** Returns the commands directly below one. */
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

/** @param name name of the value in the help, such as "file" */
function valueOf(name: string | undefined): CompletedOption["value"] {
  if (name === undefined) return "none";
  if (name === "true|false") return ["true", "false"];
  if (name === "dir") return "folder";
  return /^(?:file|paths?)/.test(name) ? "file" : "any";
}

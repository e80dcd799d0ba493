/** Renders the completion script for fish, a line for each command and option. `gwproxy completion` uses it. */
import { childrenOf, type CompletedCommand, type CompletedOption } from "./table.ts";

export function fishScript(table: readonly CompletedCommand[]): string {
  return `# fish completion for gwproxy. In ~/.config/fish/config.fish: gwproxy completion fish | source
complete -c gwproxy -f
${table.flatMap((command) => linesOf(table, command)).join("")}`;
}

function linesOf(table: readonly CompletedCommand[], { path, options, argument }: CompletedCommand): string[] {
  const children = childrenOf(table, path);
  const condition = conditionOf(path, children);
  const complete = (rest: string): string => `complete -c gwproxy -n ${quoted(condition)} ${rest}\n`;
  return [
    ...children.map((child) => complete(`-a ${child.path.at(-1)} -d ${quoted(child.description)}`)),
    ...(argument === "none" || argument === "any" ? [] : [complete(valueFlags(argument).replace(/^ -r /, ""))]),
    ...options.map(({ names, description, value }) => {
      const flags = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      return complete(`${flags.join(" ")}${valueFlags(value)} -d ${quoted(description)}`);
    }),
  ];
}

function conditionOf(path: readonly string[], children: readonly CompletedCommand[]): string {
  if (path.length === 0) return "__fish_use_subcommand";
  const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`);
  const deeper = children.map((child) => child.path.at(-1) ?? "").join(" ");
  return [...seen, ...(deeper === "" ? [] : [`not __fish_seen_subcommand_from ${deeper}`])].join("; and ");
}

function valueFlags(value: CompletedOption["value"]): string {
  if (value === "none") return "";
  if (value === "any") return " -r";
  if (value === "file") return " -r -F";
  if (value === "folder") return " -r -a '(__fish_complete_directories)'";
  return ` -r -a ${quoted(value.join(" "))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

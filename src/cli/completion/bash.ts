/**
 * Renders the completion script for bash 3.2 and later, without the helpers of the bash-completion package. `gwproxy
 * completion` uses it.
 */
import { childrenOf, type CompletedCommand, type CompletedOption } from "./table.ts";

export function bashScript(table: readonly CompletedCommand[]): string {
  const steps = table
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => {
      const before = path.slice(0, -1).join(" ");
      return `      "${before} ${path.at(-1)}") command="${path.join(" ")}" ;;\n`;
    });
  return `# bash completion for gwproxy. In ~/.bashrc: source <(gwproxy completion bash)
_gwproxy() {
  local IFS=$'\\n' cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" command="" i
  # "--output=json" is three words.
  if [[ "$cur" == "=" ]]; then cur=""; elif [[ "$prev" == "=" ]]; then prev="\${COMP_WORDS[COMP_CWORD - 2]}"; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
${steps.join("")}    esac
  done
  COMPREPLY=()
  case "$command $prev" in
${table.flatMap(values).join("")}  esac
  case "$command" in
${table.map((command) => words(table, command)).join("")}  esac
}
complete -F _gwproxy gwproxy
`;
}

function values({ path, options }: CompletedCommand): string[] {
  return options
    .filter(({ value }) => value !== "none")
    .map(({ names, value }) => {
      const pattern = names.map((name) => `"${path.join(" ")} ${name}"`).join(" | ");
      return `    ${pattern}) ${reply(value)}return ;;\n`;
    });
}

function words(table: readonly CompletedCommand[], { path, options, argument }: CompletedCommand): string {
  const names = childrenOf(table, path).map((child) => child.path.at(-1) ?? "");
  const other = names.length > 0 ? reply(names) : reply(argument);
  return `    "${path.join(" ")}")
      if [[ "$cur" == -* ]]; then ${reply(options.flatMap((option) => option.names))}else ${other === "" ? ":; " : other}fi ;;
`;
}

/** @returns a shell statement; "" when there is nothing to complete */
function reply(value: CompletedOption["value"]): string {
  if (value === "none" || value === "any") return "";
  if (value === "file") return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); `;
  if (value === "folder") return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")); `;
  return `COMPREPLY=($(compgen -W $'${value.join("\\n")}' -- "$cur")); `;
}

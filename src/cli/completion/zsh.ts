/** Renders the completion script for zsh, names with their descriptions. `gwproxy completion` uses it. */
import { childrenOf, type CompletedCommand, type CompletedOption } from "./table.ts";

export function zshScript(table: readonly CompletedCommand[]): string {
  const steps = table
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => {
      const before = path.slice(0, -1).join(" ");
      return `      ("${before} ${path.at(-1)}") command="${path.join(" ")}" ;;\n`;
    });
  return `#compdef gwproxy
# zsh completion for gwproxy. In ~/.zshrc, after compinit: source <(gwproxy completion zsh)
_gwproxy() {
  local command="" prev="$words[CURRENT-1]" i
  local -a items
  if [[ "$words[CURRENT]" == --*=* ]]; then
    prev="\${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; i++)); do
    case "$command $words[i]" in
${steps.join("")}    esac
  done
  case "$command $prev" in
${table.flatMap(values).join("")}  esac
  case "$command" in
${table.map((command) => words(table, command)).join("")}  esac
}
if [[ "$funcstack[1]" == "_gwproxy" ]]; then _gwproxy "$@"; else compdef _gwproxy gwproxy; fi
`;
}

function values({ path, options }: CompletedCommand): string[] {
  return options
    .filter(({ value }) => value !== "none")
    .map(({ names, value }) => {
      const pattern = names.map((name) => `"${path.join(" ")} ${name}"`).join("|");
      return `    (${pattern}) ${offer(value)}return ;;\n`;
    });
}

function words(table: readonly CompletedCommand[], { path, options, argument }: CompletedCommand): string {
  const flags = options.flatMap(({ names, description }) => names.map((name) => item(name, description)));
  const children = childrenOf(table, path).map((child) => item(child.path.at(-1) ?? "", child.description));
  const other = children.length > 0 ? `items=(${children.join(" ")}); _describe command items; ` : offer(argument);
  return `    ("${path.join(" ")}")
      if [[ "$words[CURRENT]" == -* ]]; then items=(${flags.join(" ")}); _describe -o option items
      else ${other === "" ? ":; " : other}fi ;;
`;
}

function offer(value: CompletedOption["value"]): string {
  if (value === "none" || value === "any") return "";
  if (value === "file") return "_files; ";
  return value === "folder" ? "_files -/; " : `compadd -- ${value.join(" ")}; `;
}

/** Formats "name:description" in single quotes. A colon in the name would end it. */
function item(name: string, description: string): string {
  return `'${name}:${description.replaceAll("'", "'\\''")}'`;
}

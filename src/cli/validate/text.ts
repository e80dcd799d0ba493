/**
 * A problem for people: the line that programs can take apart, the line of the file with the fault underlined, and what
 * the schema says of the field.
 */
import type { Terminal } from "../../lib/terminal.ts";
import { codePointLength } from "../../lib/code-point-length.ts";
import type { FileProblem } from "../../sources/directory/check.ts";
import { styled } from "../output.ts";
import { problemLine } from "../../runtime/report.ts";

/**
 * @example
 * a.yaml:7:25: error: GwPolicy default/keys: spec.traffic.timeouts.request: Invalid value: "1x": …
 *   7 |     timeouts: {request: 1x}
 *     |                         ^^
 *     = Duration: Up to four groups of a number and one of h, m, s and ms, which are added up.
 */
export function problemText(
  problem: FileProblem,
  notes: readonly string[],
  terminal: Pick<Terminal, "isColoured">,
): string {
  const { severity, line, excerpt } = problem;
  const colour = severity === "error" ? "red" : "yellow";
  const head = printable(problemLine(problem)).replace(`${severity}:`, styled(terminal, colour, `${severity}:`));
  const number = excerpt === undefined ? "" : String(line);
  const margin = " ".repeat(number.length + 2);
  const bar = styled(terminal, "blue", "|");
  const lines = [head];
  if (excerpt !== undefined) {
    const { text, from, length } = excerpt;
    // A tab stays a tab, so that the mark stands below its text whatever a tab is worth.
    const indent = text.slice(0, from).replaceAll(/[^\t]/gu, " ");
    const mark = styled(terminal, colour, "^".repeat(codePointLength(text.slice(from, from + length)) || 1));
    lines.push(`  ${styled(terminal, "blue", number)} ${bar} ${text}`, `${margin} ${bar} ${indent}${mark}`);
  }
  for (const note of notes) lines.push(`${margin} ${styled(terminal, "cyan", "=")} ${printable(note)}`);
  return `${lines.join("\n")}\n`;
}

/** What a hostile manifest puts into names must not steer a terminal. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what must not get through
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F]/g, "\uFFFD");
}

/**
 * Formats a diagnostic for people: a line that programs can parse too, the source line with the error underlined, and the
 * schema's description of the field. validate.ts uses it.
 */
import type { Terminal } from "../../lib/terminal.ts";
import { codePointLength } from "../../lib/code-point-length.ts";
import type { FileDiagnostic } from "../../sources/directory/check.ts";
import { styled } from "../output.ts";
import { diagnosticLine } from "../../runtime/report.ts";

/**
 * @example
 * a.yaml:7:25: error: GwPolicy default/keys: spec.traffic.timeouts.request: Invalid value: "1x": …
 *   7 |     timeouts: {request: 1x}
 *     |                         ^^
 *     = Duration: Up to four groups of a number and one of h, m, s and ms, which are added up.
 */
export function diagnosticText(
  diagnostic: FileDiagnostic,
  notes: readonly string[],
  terminal: Pick<Terminal, "isColoured">,
): string {
  const { severity, line, excerpt } = diagnostic;
  const colour = severity === "error" ? "red" : "yellow";
  const head = printable(diagnosticLine(diagnostic)).replace(`${severity}:`, styled(terminal, colour, `${severity}:`));
  const number = excerpt === undefined ? "" : String(line);
  const margin = " ".repeat(number.length + 2);
  const bar = styled(terminal, "blue", "|");
  const lines = [head];
  if (excerpt !== undefined) {
    const { text, from, length } = excerpt;
    // Tabs are kept, so that the mark stands below its text for every tab width.
    const indent = text.slice(0, from).replaceAll(/[^\t]/gu, " ");
    const mark = styled(terminal, colour, "^".repeat(codePointLength(text.slice(from, from + length)) || 1));
    lines.push(`  ${styled(terminal, "blue", number)} ${bar} ${text}`, `${margin} ${bar} ${indent}${mark}`);
  }
  for (const note of notes) lines.push(`${margin} ${styled(terminal, "cyan", "=")} ${printable(note)}`);
  return `${lines.join("\n")}\n`;
}

/** Replaces control characters: a hostile manifest must not control the terminal through its names. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what must not get through
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F]/g, "\uFFFD");
}

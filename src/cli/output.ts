/** What commands print. Text for people on a terminal, JSON or YAML for programs; errors say the next step. */
import { stringify } from "yaml";

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

export type StructuredForm = "json" | "yaml";

export function printStructured(value: unknown, form: StructuredForm): string {
  return form === "json" ? `${JSON.stringify(value, null, 2)}\n` : stringify(value);
}

/** A table with aligned columns, in the manner of kubectl. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd((widths[column] ?? 0) + 3))).join("").trimEnd();
  return `${[header, ...rows].map(line).join("\n")}\n`;
}

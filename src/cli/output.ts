/** Output of commands: text for people on a terminal, JSON or YAML for programs. All commands use it. */
import type { Terminal } from "../lib/terminal.ts";
import { stringify } from "yaml";

export const processTerminal: Terminal = {
  isColoured: wantsColour(process.stdout, process.env),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

/** Follows https://no-color.org: NO_COLOR counts when it is set to a text that is not empty. */
export function wantsColour(
  stream: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}

/**
 * Shows the progress of a long command on stderr: one line that is overwritten on a terminal, otherwise a line for each
 * step.
 */
export interface Progress {
  show(text: string): void;
  /** Removes the line. */
  clear(): void;
}

export function createProgress(
  { err }: Pick<Terminal, "err">,
  { isTTY }: { readonly isTTY?: boolean | undefined } = process.stderr,
): Progress {
  const startOfLine = "\r\u001B[K";
  return {
    show: (text) => err(isTTY === true ? `${startOfLine}${text}` : `${text}\n`),
    clear: () => (isTTY === true ? err(startOfLine) : undefined),
  };
}

export type Style = "red" | "yellow" | "blue" | "cyan" | "bold";

const CODES: Readonly<Record<Style, readonly [on: number, off: number]>> = {
  red: [31, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
  bold: [1, 22],
};

/** @returns the text in a colour when the terminal supports colours */
export function styled({ isColoured }: Pick<Terminal, "isColoured">, style: Style, text: string): string {
  const [on, off] = CODES[style];
  return isColoured && text !== "" ? `\u001B[${on}m${text}\u001B[${off}m` : text;
}

export type StructuredForm = "json" | "yaml";

export function printStructured(value: unknown, form: StructuredForm): string {
  return form === "json" ? `${JSON.stringify(value, null, 2)}\n` : stringify(value);
}

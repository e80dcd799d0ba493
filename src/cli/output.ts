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

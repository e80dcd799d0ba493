/** Reads manifests from standard input, once: what `-f -` names. Used when paths are read, as often as that happens. */
import { text } from "node:stream/consumers";

/** The name under which standard input is reported. */
export const STDIN_NAME = "stdin";

let content: Promise<string> | undefined;

export function readStdin(): Promise<string> {
  return (content ??= text(process.stdin));
}

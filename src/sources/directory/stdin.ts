/** Reads manifests from standard input once (`-f -`); read.ts uses it and may ask repeatedly. */
import { text } from "node:stream/consumers";

/** The file name under which diagnostics of standard input are reported. */
export const STDIN_NAME = "stdin";

let content: Promise<string> | undefined;

export function readStdin(): Promise<string> {
  return (content ??= text(process.stdin));
}

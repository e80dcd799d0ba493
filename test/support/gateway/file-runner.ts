/** A process of test/run.ts: takes one test file after the other from its parent and runs each as a suite of that name. */
import { describe } from "node:test";
import type { RunnerMessage } from "./file-reporter.ts";

/** A file that takes longer hangs. */
const FILE_LIMIT_MS = 900_000;
/** What a file has opened and not closed keeps the process alive. */
const END_LIMIT_MS = 30_000;

process.on("message", ({ file }: { readonly file: string | undefined }) => {
  if (file === undefined) finish();
  // Hooks of the file belong to its suite and run for no other file.
  else describe(file, { timeout: FILE_LIMIT_MS }, async () => void (await import(file)));
});
process.send?.({ type: "ready" } satisfies RunnerMessage);

function finish(): void {
  process.disconnect();
  setTimeout(() => {
    process.stderr.write(`still open after the last file: ${process.getActiveResourcesInfo().join(", ")}\n`);
    process.exit(1);
  }, END_LIMIT_MS).unref();
}

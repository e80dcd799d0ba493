/** A child process of test/run.ts: receives one test file after the other and runs each as a suite of that name. */
import { describe } from "node:test";
import type { RunnerMessage } from "./file-reporter.ts";

/** Limit after which a file counts as hanging. */
const FILE_LIMIT_MS = 900_000;
/** Limit for exiting after the last file; a resource that a file left open keeps the process alive. */
const END_LIMIT_MS = 30_000;

process.on("message", ({ file }: { readonly file: string | undefined }) => {
  if (file === undefined) finish();
  // Hooks of the file belong to its suite and do not run for other files.
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

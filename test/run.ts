/**
 * Runs test files: `node --import tsx test/run.ts [--at-once N] [--dearest N] [--changed-since REVISION] PATTERN…`. A few processes load the code once each and take one
 * file after the other, because loading it for each file cost more than the tests. Prints failures, skipped tests and the dearest files.
 */
import { fork, spawnSync, type ChildProcess } from "node:child_process";
import { globSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { FileReport, RunnerMessage } from "./support/runner/file-reporter.ts";

const ROOT = join(import.meta.dirname, "..");

/** Then a process is followed by a fresh one: what tests leave behind adds up. */
const FILES_OF_A_PROCESS = 40;

/** For what a process has printed to get out. */
const LAST_WORDS_MS = 500;

/** Files that change or measure the process they are in. */
const OWN_PROCESS: readonly RegExp[] = [/^test\/slow\//];

/** What files are about that only see processes: their imports do not say it. */
const SUBJECTS: readonly (readonly [file: RegExp, sources: RegExp])[] = [
  [/slow\/(?:crowds|floods|fuzz|h2spec)/, /^src\/proxy\/listeners\//],
  [/slow\/grpc-interop/, /^src\/proxy\/(?:listeners|backends|upstream|pipeline)\//],
  [/slow\/keycloak/, /^src\/(?:sources\/remote|proxy\/policies\/jwt)/],
  [/slow\/inference/, /^src\/proxy\/(?:backends\/inference-pool|policies\/ext-proc)\//],
  [/slow\/spire/, /^src\/proxy\/spiffe\//],
  [/slow\/chart/, /^(?:chart|src\/(?:deployer|controller|cli|runtime|admission)|tools\/image)/],
  [/slow\/node/, /^(?:src\/(?:deployer|controller|cli)|tools\/image|test\/testbed\/node)/],
  [/cluster\/properties/, /^(?:crds|codegen|src\/admission)\//],
  [/slow\/mcp-(?:conformance|inspector)/, /^src\/proxy\/mcp\//],
  [/conformance\/cel/, /^src\/cel\//],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    "at-once": { type: "string", default: "2" },
    dearest: { type: "string", default: "10" },
    "changed-since": { type: "string" },
  },
});

// Of a test runner around this one; the processes would report to it and not to us.
const { NODE_TEST_CONTEXT: _outer, ...environment } = process.env;
const startedMs = performance.now();
const shared: string[] = [];
const alone: string[] = [];
const files = positionals
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  .map((file) => relative(ROOT, resolve(ROOT, file)))
  .sort();
for (const file of touchedFirst(files, values["changed-since"])) {
  (OWN_PROCESS.some((pattern) => pattern.test(file)) ? alone : shared).push(file);
}
if (shared.length + alone.length === 0) throw new Error(`no test file matches ${positionals.join(" ")}`);
const reports: FileReport[] = [];
const failures: string[] = [];
const skipped: string[] = [];

await Promise.all(Array.from({ length: Number(values["at-once"]) }, () => work()));
summarize();
process.exitCode = failures.length > 0 ? 1 : 0;

/** One process after the other, as long as there are files: each file that needs one for itself first. */
async function work(): Promise<void> {
  for (;;) {
    const own = alone.shift();
    if (own !== undefined) await runProcess(() => undefined, own);
    else if (shared.length > 0) {
      let left = FILES_OF_A_PROCESS;
      await runProcess(() => (--left > 0 ? shared.shift() : undefined), shared.shift() ?? "");
    } else return;
  }
}

/** Resolves when the process has ended. @param next the file after the one that is done */
async function runProcess(next: () => string | undefined, first: string): Promise<void> {
  const execArgv = [
    "--import",
    "tsx",
    `--test-reporter=${join(import.meta.dirname, "support/runner/file-reporter.ts")}`,
  ];
  const child = fork(join(import.meta.dirname, "support/runner/file-runner.ts"), {
    cwd: ROOT,
    execArgv,
    env: { ...environment, NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/compile") },
  });
  let current: string | undefined = first;
  let hasFailure = false;
  child.on("message", (message: RunnerMessage) => {
    if (message.type === "report") {
      const { file, tests, cpuMs } = message.report;
      // A test that goes on after its file was cancelled is reported on its own.
      if (file !== current) return;
      reports.push(message.report);
      process.stdout.write(`${seconds(cpuMs)} CPU-s ${String(tests).padStart(5)} tests  ${file}\n`);
      if (tests === 0) failures.push(`${file}: has no test`);
      current = hasFailure ? undefined : next();
      // What a failed file leaves running would make the next ones fail.
      if (hasFailure) setTimeout(() => child.kill("SIGKILL"), LAST_WORDS_MS);
      else tell(child, current);
    } else if (message.type === "ready") tell(child, current);
    else {
      hasFailure ||= message.type === "failed";
      (message.type === "failed" ? failures : skipped).push(message.text);
    }
  });
  const code = await new Promise<number | string | null>((resolve) => {
    child.once("exit", (status, signal) => resolve(status ?? signal));
  });
  if (current !== undefined) failures.push(`${current}: its process ended with ${code}`);
  else if (code !== 0 && failures.length === 0) failures.push(`a process ended with ${code} after its last file`);
}

/** A change that breaks something breaks what it touches first. */
function touchedFirst(files: readonly string[], revision: string | undefined): readonly string[] {
  if (revision === undefined) return files;
  // The revision may be unknown in a shallow checkout; the order is a convenience.
  const { stdout } = spawnSync("git", ["diff", "--name-only", revision], { cwd: ROOT, encoding: "utf8" });
  const changed = stdout.split("\n").filter((path) => path !== "");
  const isTouched = (file: string): boolean =>
    changed.includes(file) ||
    SUBJECTS.some(([about, sources]) => about.test(file) && changed.some((path) => sources.test(path)));
  return [...files].sort((a, b) => Number(isTouched(b)) - Number(isTouched(a)));
}

function tell(child: ChildProcess, file: string | undefined): void {
  child.send({ file: file === undefined ? undefined : resolve(ROOT, file) });
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1).padStart(7);
}

function summarize(): void {
  const dearest = [...reports].sort((a, b) => b.cpuMs - a.cpuMs).slice(0, Number(values.dearest));
  const rows = dearest.map(({ file, cpuMs, ms }) => `${seconds(cpuMs)}${seconds(ms)}  ${file}`);
  if (rows.length > 0) process.stdout.write(`    CPU   wall  dearest files, in seconds\n${rows.join("\n")}\n`);
  if (skipped.length > 0) process.stdout.write(`\nskipped:\n  ${skipped.join("\n  ")}\n`);
  if (failures.length > 0) process.stdout.write(`\nfailed:\n  ${failures.join("\n  ")}\n`);
  const total = reports.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  const tests = reports.reduce((sum, report) => sum + report.tests, 0);
  process.stdout.write(
    `${reports.length} files in ${seconds(performance.now() - startedMs).trim()} s (${seconds(total).trim()} CPU-seconds without loading)\n` +
      `${Math.max(0, tests - failures.length)} passed, ${failures.length} failed\n`,
  );
}

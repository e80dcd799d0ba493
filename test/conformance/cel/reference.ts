/** The Go program beside this file: the official test data as JSON, and cel-go as a second engine. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const SOURCE = join(import.meta.dirname, "reference");
const CACHE = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "gwproxy-conformance");
const GO = { cwd: SOURCE, env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/local/go/bin` } };
const MAX_OUTPUT = 64 * 1024 * 1024;

/** Builds it, downloading the pinned modules if the cache lacks them. @returns the path of the program */
export async function buildReference(): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  const program = join(CACHE, "celreference");
  await run("go", ["build", "-mod=readonly", "-o", program, "."], GO);
  return program;
}

/** The official test data, as the program prints them. */
export async function officialData(): Promise<unknown> {
  const program = await buildReference();
  const { stdout: folder } = await run("go", ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "cel.dev/expr"], GO);
  const data = join(folder.trim(), "tests", "simple", "testdata");
  const { stdout } = await run(program, ["cases", data], { maxBuffer: MAX_OUTPUT });
  return JSON.parse(stdout) as unknown;
}

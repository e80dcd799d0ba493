/**
 * Finds or installs programs: from PATH, from Debian, and from PyPI and npm into a cache folder outside of the
 * checkout. Each is optional and pinned to an exact version: a failure is reported in the table and does not end the
 * run.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface Found {
  readonly file: string;
}

export const CACHE: string = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "gwproxy-bench");

/** @throws Error when it is not on PATH and cannot be installed */
export async function findProgram(name: string, { debian }: { debian: string }): Promise<Found> {
  const found = onPath(name);
  if (found !== undefined) return { file: found };
  if (process.getuid?.() !== 0) throw new Error(`${name} is not on PATH (Debian: apt-get install ${debian})`);
  // Prevents the package from starting its service during the installation.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  await run("apt-get", ["install", "-y", "--no-install-recommends", debian], { env });
  const installed = onPath(name);
  if (installed === undefined) throw new Error(`the Debian package ${debian} has no ${name}`);
  return { file: installed };
}

/** @param requirement exact, as `package==version`. @returns the program of that name in its own environment */
export async function pythonProgram(name: string, requirement: string): Promise<Found> {
  const folder = await once([requirement], async (target) => {
    await run("python3", ["-m", "venv", target]);
    await run(join(target, "bin/python"), ["-m", "pip", "install", "--quiet", requirement], { maxBuffer: 1 << 26 });
  });
  return { file: join(folder, "bin", name) };
}

/**
 * @param version exact
 * @param overrides versions that its own dependencies must have, wherever they lie in the tree
 * @returns the folder that holds node_modules
 */
export function npmPackage(
  name: string,
  version: string,
  overrides: Readonly<Record<string, string>>,
): Promise<string> {
  const manifest = JSON.stringify({ private: true, dependencies: { [name]: version }, overrides });
  return once([name, manifest], async (target) => {
    writeFileSync(join(target, "package.json"), manifest);
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
    await run("npm", ["install", ...quiet], { cwd: target, maxBuffer: 1 << 26 });
  });
}

/**
 * A folder that is complete or absent: a mark is written last. Environments of Python hold their own path, so the
 * folder is filled in place.
 */
async function once(parts: readonly string[], fill: (folder: string) => Promise<void>): Promise<string> {
  const readable = (parts[0] ?? "").replace(/[^\w.-]+/g, "-");
  const folder = join(CACHE, `${readable}-${createHash("sha256").update(parts.join(" ")).digest("hex").slice(0, 8)}`);
  const mark = `${folder}.complete`;
  if (existsSync(mark)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await fill(folder);
  writeFileSync(mark, `${parts.join("\n")}\n`);
  return folder;
}

function onPath(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Entry point of the generator. `node codegen/main.ts` writes every generated file. With `--verify` it writes nothing,
 * compares byte by byte, and exits with 1 after listing stale files and changes that break objects of the committed
 * baseline. With `--baseline` it replaces that baseline by the current schemas. All modes include generated/proto.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BASELINE, baselineBreaks, newBaseline } from "./baseline.ts";
import { generate } from "./generate.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Folders with generated files only: an unknown file there is a leftover and is removed. */
const OWNED = ["generated", "crds/documented", "chart/gwproxy-crds/templates"];

async function run(isVerify: boolean, isNewBaseline: boolean): Promise<number> {
  if (isNewBaseline) writeFileSync(ROOT + BASELINE, newBaseline(ROOT));
  const broken = baselineBreaks(ROOT);
  for (const text of broken) console.error(`breaks objects that the last CRDs took: ${text}`);
  if (broken.length > 0) console.error("If that is meant, run `make baseline` and say it in changes/unreleased.");
  const files = await generate(ROOT);
  for (const [path, text] of protoFiles()) files.set(path, text);
  const stale = [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path);
  const leftover = OWNED.flatMap((folder) => list(folder)).filter((path) => !files.has(path));
  if (isVerify) {
    for (const path of stale) console.error(`stale: ${path}`);
    for (const path of leftover) console.error(`not generated any more: ${path}`);
    if (stale.length + leftover.length === 0) return broken.length === 0 ? 0 : 1;
    console.error("Run `make generate` and commit the result.");
    return 1;
  }
  for (const path of stale) {
    mkdirSync(dirname(ROOT + path), { recursive: true });
    writeFileSync(ROOT + path, files.get(path) ?? "");
    console.log(`wrote ${path}`);
  }
  for (const path of leftover) {
    rmSync(ROOT + path);
    console.log(`removed ${path}`);
  }
  return 0;
}

function read(path: string): string | undefined {
  return existsSync(ROOT + path) ? readFileSync(ROOT + path, "utf8") : undefined;
}

function list(folder: string, base = ROOT): string[] {
  if (!existsSync(base + folder)) return [];
  return readdirSync(base + folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(base.length));
}

/** Runs buf in a temporary folder and returns the files that it wrote. */
function protoFiles(): Map<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-proto-"));
  try {
    execFileSync("buf", ["generate", "--output", folder], {
      cwd: ROOT,
      env: { ...process.env, PATH: `${ROOT}node_modules/.bin:${process.env["PATH"] ?? ""}` },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const base = `${folder}/`;
    return new Map(list("generated/proto", base).map((path) => [path, readFileSync(base + path, "utf8")]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

process.exitCode = await run(process.argv.includes("--verify"), process.argv.includes("--baseline"));

/**
 * Runs `gwproxy generate types`: reads CRDs, calls the generator and writes its files. Only this module loads the
 * generator, so that no other command pays for it.
 */
import type { Terminal } from "../lib/terminal.ts";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import type { ForeignFile, ForeignOutput, generateForeign as GenerateForeign } from "../../codegen/foreign/generate.ts";
import { FatalError, messageOf } from "../lib/errors.ts";
import { expandPattern, isPattern } from "../sources/directory/pattern.ts";
import { createProgress, type Progress } from "./output.ts";

export interface GenerateTypesOptions {
  readonly file: readonly string[];
  readonly outputDir: string | undefined;
  readonly stdout: boolean;
  readonly only: "types" | "validators" | undefined;
}

/** @throws FatalError with exit code 1 for a CRD that cannot be used, 2 for files that cannot be read or written */
export async function runGenerateTypes(options: GenerateTypesOptions, terminal: Terminal): Promise<void> {
  const inputs = await Promise.all((await Promise.all(options.file.map(filesOf))).flat().map(read));
  const { generateForeign } = await import("../../codegen/foreign/generate.ts");
  const { files, notes } = generate(generateForeign, inputs, createProgress(terminal));
  for (const note of notes) terminal.err(`note: ${note}\n`);
  const wanted = [...files].filter(([path]) => isWanted(path, options.only));
  for (const [path, text] of wanted) {
    if (options.outputDir !== undefined) await write(join(options.outputDir, path), text, terminal);
    // Print a single file without a heading, so that it can be piped into place.
    else terminal.out(wanted.length === 1 ? text : `// file: ${path}\n${text}\n`);
  }
}

function generate(
  generateForeign: typeof GenerateForeign,
  inputs: readonly ForeignFile[],
  progress: Progress,
): ForeignOutput {
  try {
    return generateForeign(inputs, ({ title, number, count }) => {
      if (count > 1) progress.show(`generating ${title} (${number} of ${count})`);
    });
  } catch (error) {
    throw new FatalError(messageOf(error), 1, error);
  } finally {
    progress.clear();
  }
}

/** @returns the files that a path names: the file itself, those in a folder, or those that match a pattern */
async function filesOf(path: string): Promise<readonly string[]> {
  if (path === "-") return [path];
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return (await expandPattern(`${path}/**/*.{yaml,yml,json}`)).paths;
  if (found !== undefined || !isPattern(path)) return [path];
  const { paths } = await expandPattern(path);
  if (paths.length === 0) throw new FatalError(`cannot read ${path}: no file matches`, 2);
  return paths;
}

async function read(path: string): Promise<{ readonly path: string; readonly text: string }> {
  try {
    return path === "-"
      ? { path: "stdin", text: await readAll(process.stdin) }
      : { path, text: await readFile(path, "utf8") };
  } catch (error) {
    throw new FatalError(`cannot read ${path}: ${messageOf(error)}`, 2, error);
  }
}

async function write(path: string, text: string, terminal: Terminal): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  } catch (error) {
    throw new FatalError(`cannot write ${path}: ${messageOf(error)}`, 2, error);
  }
  terminal.out(`wrote ${path}\n`);
}

function isWanted(path: string, only: GenerateTypesOptions["only"]): boolean {
  const isValidator = /\.validator\.(?:js|d\.ts)$/.test(path);
  return only === undefined || (only === "validators") === isValidator;
}

/**
 * `gwproxy generate types`: reads CRDs, runs the generator and writes what it makes. The generator and its libraries
 * weigh more than all the rest, so they are loaded here and nowhere else; images leave them out.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { FatalError, messageOf } from "../../lib/errors.ts";
import type { GenerateTypesOptions } from "../commands/generate.ts";
import type { Terminal } from "../output.ts";

/** @throws FatalError with exit code 1 for a CRD that cannot be used, 2 for files that cannot be read or written */
export async function runGenerateTypes(options: GenerateTypesOptions, terminal: Terminal): Promise<void> {
  const inputs = await Promise.all(options.file.map(read));
  const { generateForeign } = await import("../../../codegen/foreign/generate.ts").catch(notThere);
  const { files, notes } = await generateForeign(inputs).catch((error: unknown) => {
    throw new FatalError(messageOf(error), 1, error);
  });
  for (const note of notes) terminal.err(`note: ${note}\n`);
  const wanted = [...files].filter(([path]) => isWanted(path, options.only));
  for (const [path, text] of wanted) {
    if (options.outputDir !== undefined) await write(join(options.outputDir, path), text, terminal);
    // One file alone is printed as it is, so that it can be piped into place.
    else terminal.out(wanted.length === 1 ? text : `// file: ${path}\n${text}\n`);
  }
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

function notThere(error: unknown): never {
  const isMissing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
  if (!isMissing) throw error;
  throw new FatalError(
    "this build of gwproxy has no generator; install the npm package and run it from there",
    2,
    error,
  );
}

/**
 * Finds and reads manifest files for the directory source and for `gwproxy validate`. It takes files, folders, patterns
 * and "-" as named on the command line, and returns texts in a stable order and the folders to watch. Hidden names are
 * skipped: they belong to editors and to ConfigMap mounts.
 */
import { access, readFile, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import { compare } from "../../lib/compare.ts";
import { expandPattern, isPattern } from "./pattern.ts";
import { readStdin, STDIN_NAME } from "./stdin.ts";

export interface SourceFile {
  /** The path as the user knows it: the named path, or a path below it. */
  readonly path: string;
  readonly text: string;
}

/** A file or folder that exists but cannot be read. Its previous content stays in force. */
export interface PathError {
  readonly path: string;
  readonly message: string;
}

export interface Reading {
  readonly files: readonly SourceFile[];
  readonly errors: readonly PathError[];
  /** Absolute paths of the folders to watch. */
  readonly folders: ReadonlySet<string>;
  /**
   * Maps the absolute path of each folder to the name under which the user knows it, so that a change in the folder
   * leads to one file. Undefined when a change may mean more: with links, read errors, or files that were named
   * directly.
   */
  readonly plain: ReadonlyMap<string, string> | undefined;
}

export const MANIFEST: RegExp = /\.(?:ya?ml|json)$/i;
/** The argument that stands for standard input on the command line. */
const STDIN = "-";
const MAX_FILE_BYTES = 16 * 1024 * 1024;

export async function readPaths(paths: readonly string[]): Promise<Reading> {
  const walk = new Walk();
  for (const path of paths) await walk.named(path);
  const files: SourceFile[] = [];
  if (walk.readsStdin) files.push({ path: STDIN_NAME, text: await readStdin() });
  for (const path of [...walk.found].sort(compare)) {
    try {
      files.push({ path, text: await readManifest(path) });
    } catch (error) {
      walk.errors.push({ path, message: `cannot be read: ${messageOf(error)}` });
    }
  }
  const plain = walk.errors.length > 0 || walk.isLinked ? undefined : walk.names;
  return { files, errors: walk.errors, folders: walk.folders, plain };
}

/**
 * Checks that the named paths exist, without reading them.
 * @returns the diagnostics of the named paths
 */
export async function findPathErrors(paths: readonly string[]): Promise<readonly PathError[]> {
  const errors: PathError[] = [];
  for (const path of paths) {
    if (path === STDIN) continue;
    const error = await access(path).then(() => undefined, noPath(path));
    if (error === undefined || (isPattern(path) && (await expandPattern(path)).paths.length > 0)) continue;
    errors.push(error);
  }
  return errors;
}

function noPath(path: string): (error: unknown) => PathError {
  const missing = isPattern(path) ? "no file matches" : "no such file or folder";
  return (error) => ({ path, message: isMissing(error) ? missing : `cannot be read: ${messageOf(error)}` });
}

class Walk {
  readonly found: Set<string> = new Set();
  readonly errors: PathError[] = [];
  readonly folders: Set<string> = new Set();
  readonly names: Map<string, string> = new Map();
  /** True when a file or folder has another name than its location says. */
  isLinked = false;
  readsStdin = false;
  readonly #seen: Set<string> = new Set();

  async named(path: string): Promise<void> {
    if (path === STDIN) {
      this.readsStdin = true;
      this.isLinked = true;
      return;
    }
    // A watch of the parent reports when the named path is removed and created again.
    this.folders.add(dirname(resolve(path)));
    try {
      const found = await stat(path);
      if (found.isDirectory()) await this.#folder(path);
      else {
        this.isLinked = true;
        await this.#file(path);
      }
    } catch (error) {
      if (isMissing(error) && isPattern(path) && (await this.#pattern(path))) return;
      this.errors.push(noPath(path)(error));
    }
  }

  /** @returns whether any file matches */
  async #pattern(pattern: string): Promise<boolean> {
    const { paths, folders } = await expandPattern(pattern);
    this.isLinked = true;
    for (const folder of folders) this.folders.add(resolve(folder));
    for (const path of paths) await this.#entry(path, path);
    return paths.length > 0;
  }

  async #folder(path: string): Promise<void> {
    const real = await realpath(path);
    // Links may form a cycle.
    if (this.#seen.has(real)) return;
    this.#seen.add(real);
    this.folders.add(real);
    this.names.set(real, path);
    if (real !== resolve(path)) this.isLinked = true;
    for (const name of (await readdir(path)).sort(compare)) {
      if (!name.startsWith(".")) await this.#entry(join(path, name), name);
    }
  }

  async #entry(path: string, name: string): Promise<void> {
    try {
      const found = await stat(path);
      if (found.isDirectory()) await this.#folder(path);
      else if (MANIFEST.test(name)) await this.#file(path);
    } catch (error) {
      // A file that vanished between listing and `stat` was deleted; a dangling link to a manifest is an error.
      if (!isMissing(error) || MANIFEST.test(name)) {
        this.errors.push({ path, message: `cannot be read: ${messageOf(error)}` });
      }
    }
  }

  async #file(path: string): Promise<void> {
    const real = await realpath(path);
    this.folders.add(dirname(real));
    if (real !== resolve(path)) this.isLinked = true;
    if (this.#seen.has(real)) return;
    this.#seen.add(real);
    this.found.add(path);
  }
}

export async function readManifest(path: string): Promise<string> {
  const found = await stat(path);
  if (!found.isFile()) throw new TypeError("not a regular file");
  if (found.size > MAX_FILE_BYTES) throw new RangeError(`larger than ${MAX_FILE_BYTES} bytes`);
  const bytes = await readFile(path);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

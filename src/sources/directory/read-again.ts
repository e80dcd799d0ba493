/**
 * Reads only the files that the watch reported, so that one changed file among thousands costs one read. The directory
 * source uses it. It returns undefined when only a full read can tell what a change means.
 */
import { lstat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { MANIFEST, isMissing, readManifest, type SourceFile } from "./read.ts";

export interface Rereading {
  readonly files: readonly SourceFile[];
  /** Files that no longer exist. */
  readonly gone: readonly string[];
}

/**
 * @param plain the folder names that a full read returned
 * @param touched absolute paths that may have changed
 * @param isKnown whether a file of that name was read before
 * @returns undefined when a folder was added or removed, a link appeared or a file cannot be read
 */
export async function readAgain(
  plain: ReadonlyMap<string, string>,
  touched: ReadonlySet<string>,
  isKnown: (path: string) => boolean,
): Promise<Rereading | undefined> {
  const roots = new Set([...plain.values()].map((path) => resolve(path)));
  const files: SourceFile[] = [];
  const gone: string[] = [];
  for (const absolute of touched) {
    if (roots.has(absolute)) return undefined;
    const name = basename(absolute);
    const folder = plain.get(dirname(absolute));
    if (folder === undefined || name.startsWith(".")) continue;
    const path = join(folder, name);
    try {
      const found = await lstat(path);
      if (!found.isFile()) return undefined;
      if (MANIFEST.test(name)) files.push({ path, text: await readManifest(path) });
    } catch (error) {
      if (!isMissing(error)) return undefined;
      if (isKnown(path)) gone.push(path);
    }
  }
  return { files, gone };
}

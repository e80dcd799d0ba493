/**
 * Expands glob patterns in paths, such as "manifests/*.yaml" in quotes. read.ts uses it. The shell does not expand a
 * quoted pattern, and expanding here also matches files that are added later.
 */
import { glob } from "node:fs/promises";
import { join } from "node:path";

export interface Expansion {
  readonly paths: readonly string[];
  /** Folders in which a new file or folder could match the pattern. */
  readonly folders: readonly string[];
}

export function isPattern(path: string): boolean {
  return /[*?[\]{}]/.test(path);
}

export async function expandPattern(pattern: string): Promise<Expansion> {
  const wantsHidden = /(?:^|\/)\.[^./]/.test(pattern);
  const isWanted = (path: string): boolean => wantsHidden || !/(?:^|\/)\.[^./]/.test(path);
  const segments = pattern.split("/");
  const folders = new Set<string>();
  for (let length = 1; length < segments.length; length++) {
    const prefix = segments.slice(0, length).join("/") || "/";
    if (!isPattern(prefix)) folders.add(prefix);
    else for (const folder of await foldersOf(prefix)) if (isWanted(folder)) folders.add(folder);
  }
  if (segments.length === 1) folders.add(".");
  const paths: string[] = [];
  for await (const path of glob(pattern)) if (isWanted(path)) paths.push(path);
  return { paths, folders: [...folders] };
}

async function foldersOf(pattern: string): Promise<string[]> {
  const folders: string[] = [];
  for await (const entry of glob(pattern, { withFileTypes: true })) {
    if (entry.isDirectory()) folders.push(join(entry.parentPath, entry.name));
  }
  return folders;
}

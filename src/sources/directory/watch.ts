/**
 * Watches folders and reports that something in them may have changed; the directory source uses it. It watches folders
 * instead of files, because editors write by renaming and because a file that is removed and created again is a new
 * inode. The reader finds out what changed.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";

interface Watched {
  readonly watcher: FSWatcher;
  /**
   * Device and inode. A folder that was removed and created again has another identity, and its old watcher reports
   * nothing.
   */
  readonly identity: string;
}

export class FolderWatch {
  readonly #watched: Map<string, Watched> = new Map();
  readonly #changed: (path: string | undefined) => void;
  readonly #log: Logger;

  /**
   * @param changed called with the path that changed, below a folder as it was named, or with undefined when any path
   * may have changed
   */
  constructor(changed: (path: string | undefined) => void, log: Logger) {
    this.#changed = changed;
    this.#log = log;
  }

  /** @returns whether a folder is watched that was not watched before; it may have changed in between */
  follow(folders: ReadonlySet<string>): boolean {
    for (const folder of this.#watched.keys()) if (!folders.has(folder)) this.#drop(folder);
    let added = false;
    for (const folder of folders) if (this.#follow(folder)) added = true;
    return added;
  }

  stop(): void {
    for (const folder of this.#watched.keys()) this.#drop(folder);
  }

  #follow(folder: string): boolean {
    const identity = identityOf(folder);
    if (this.#watched.get(folder)?.identity === identity) return false;
    this.#drop(folder);
    if (identity === undefined) return false;
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) =>
        this.#changed(name === null ? undefined : join(folder, name)),
      );
      watcher.on("error", (error) => {
        this.#log.debug("a watched folder is gone", { folder, reason: messageOf(error) });
        this.#drop(folder);
        this.#changed(undefined);
      });
      this.#watched.set(folder, { watcher, identity });
      return true;
    } catch (error) {
      this.#log.warn("a folder cannot be watched: changes in it are not seen", { folder, reason: messageOf(error) });
      return false;
    }
  }

  #drop(folder: string): void {
    this.#watched.get(folder)?.watcher.close();
    this.#watched.delete(folder);
  }
}

function identityOf(folder: string): string | undefined {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}

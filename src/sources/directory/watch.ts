/**
 * Tells that something in some folders may have changed. Folders and not files are watched: editors write by renaming,
 * and a file that is removed and made again is another one. What changed is for the reader to find out.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";

interface Watched {
  readonly watcher: FSWatcher;
  /** Device and inode: a folder that was removed and made again has others, and its watcher is deaf. */
  readonly identity: string;
}

export class FolderWatch {
  readonly #watched: Map<string, Watched> = new Map();
  readonly #changed: (path: string | undefined) => void;
  readonly #log: Logger;

  /** @param changed hears which path, below a followed folder as it was named; undefined: it may be anything */
  constructor(changed: (path: string | undefined) => void, log: Logger) {
    this.#changed = changed;
    this.#log = log;
  }

  /** @returns whether a folder is watched now that was not before: it may have changed in between */
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

/**
 * Objects from files and folders, followed as they change. In: paths. Out: events and problems. Not here: what objects
 * mean, and what is wrong with them (src/admission says that).
 */
import { resolve, sep } from "node:path";
import { type ObjectId, objectKey } from "../../api/object.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Source, SourceProblem, SourceSink } from "../source.ts";
import { type State, assemble, byPlace, eventsBetween } from "./assemble.ts";
import { type CheckedFile, type Checks, checkFile } from "./check.ts";
import { type Reading, readPaths } from "./read.ts";
import { FolderWatch } from "./watch.ts";

export interface DirectorySourceOptions extends Checks {
  readonly paths: readonly string[];
  readonly log: Logger;
  /** How long an emptied file keeps its text, in case it is about to be written. */
  readonly emptySettleMs?: number;
}

/** Long enough for an editor to finish, short enough not to be felt. */
const SETTLE_MS = 20;
/** An emptied file is usually one that is about to be written. */
const EMPTY_SETTLE_MS = 150;
/** Where reading failed altogether, try again: nobody may ever touch the folder again. */
const RETRY_MS = 1_000;

export interface DirectorySource extends Source {
  /** Reads everything again now. Resolves when what changed has been delivered. */
  reload(): Promise<void>;
  /** Where a field of an object stands; undefined for an object that no file holds. */
  locate(
    id: ObjectId,
    path: string,
  ): { readonly file: string; readonly line: number; readonly column: number } | undefined;
}

export function createDirectorySource(options: DirectorySourceOptions): DirectorySource {
  return new FollowedPaths(options);
}

interface Known {
  readonly text: string;
  readonly checked: CheckedFile;
  /** The last content that could be read as a whole. */
  readonly sound: CheckedFile | undefined;
}

class FollowedPaths implements DirectorySource {
  readonly #options: DirectorySourceOptions;
  readonly #watch: FolderWatch;
  #sink: SourceSink | undefined;
  #known: Map<string, Known> = new Map();
  #state: State = new Map();
  #emptied: ReadonlySet<string> = new Set();
  #reported = "[]";
  #timer: NodeJS.Timeout | undefined;
  #scanning: Promise<void> | undefined;
  #again = false;

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#watch = new FolderWatch(() => this.#schedule(SETTLE_MS), options.log);
  }

  async start(sink: SourceSink): Promise<void> {
    this.#sink = sink;
    this.#scanning = this.#scan(true);
    await this.#scanning.finally(() => this.#finished());
  }

  async stop(): Promise<void> {
    this.#sink = undefined;
    clearTimeout(this.#timer);
    this.#watch.stop();
    await this.#scanning;
    this.#watch.stop();
  }

  async reload(): Promise<void> {
    await this.#scanning;
    clearTimeout(this.#timer);
    this.#scanning = this.#scan(true);
    await this.#scanning.finally(() => this.#finished());
  }

  locate(id: ObjectId, path: string): { file: string; line: number; column: number } | undefined {
    const key = objectKey(id);
    for (const { objects, fragments } of this.#inForce()) {
      const found = [...objects, ...fragments].find((object) => objectKey(object.id) === key);
      if (found !== undefined) return { file: found.file, ...found.locate(path) };
    }
    return undefined;
  }

  #schedule(delayMs: number): void {
    if (this.#sink === undefined) return;
    if (this.#scanning !== undefined) {
      this.#again = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#scanning = this.#scan(false)
        .catch((error: unknown) => {
          this.#options.log.error("files could not be taken in; trying again", { reason: messageOf(error) });
          this.#timer = setTimeout(() => this.#schedule(0), RETRY_MS);
        })
        .finally(() => this.#finished());
    }, delayMs);
  }

  #finished(): void {
    this.#scanning = undefined;
    if (!this.#again) return;
    this.#again = false;
    this.#schedule(SETTLE_MS);
  }

  /** @param atOnce takes what is there now, and speaks even when nothing changed */
  async #scan(atOnce: boolean): Promise<void> {
    const reading = await readPaths(this.#options.paths);
    if (this.#sink === undefined) return;
    // Watching starts after the listing that named the folder, so what a new folder holds is read once more.
    if (this.#watch.follow(reading.folders)) this.#again = true;
    const settled = atOnce ? reading : this.#withoutEmptied(reading);
    this.#known = this.#check(settled);
    const { state, problems } = assemble(this.#inForce(), this.#state);
    const events = eventsBetween(this.#state, state);
    if (events.length > 0 || atOnce) this.#sink.apply(events);
    this.#state = state;
    this.#report([...problems, ...reading.faults.map(faultProblem)].sort(byPlace), atOnce);
  }

  /** A file that just became empty keeps its text for one more round. */
  #withoutEmptied(reading: Reading): Reading {
    const emptied = new Set<string>();
    const files = reading.files.map((file) => {
      const known = this.#known.get(file.path);
      if (file.text.trim() !== "" || known === undefined || known.text.trim() === "") return file;
      if (this.#emptied.has(file.path)) return file;
      emptied.add(file.path);
      return { path: file.path, text: known.text };
    });
    this.#emptied = emptied;
    if (emptied.size > 0) setTimeout(() => this.#schedule(0), this.#options.emptySettleMs ?? EMPTY_SETTLE_MS).unref();
    return { ...reading, files };
  }

  #check(reading: Reading): Map<string, Known> {
    const next = new Map<string, Known>();
    for (const file of reading.files) {
      const known = this.#known.get(file.path);
      if (known?.text === file.text) {
        next.set(file.path, known);
        continue;
      }
      const checked = checkFile(file, this.#options);
      next.set(file.path, { text: file.text, checked, sound: checked.broken ? known?.sound : checked });
    }
    // What exists but cannot be read now keeps what it said: a named path with all below it.
    for (const [path, known] of this.#known) {
      if (!next.has(path) && reading.faults.some((fault) => isAtOrBelow(path, fault.path))) next.set(path, known);
    }
    return new Map([...next].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The objects of the last sound content, with the problems of the present one. */
  #inForce(): CheckedFile[] {
    return [...this.#known.values()].map(({ checked, sound }) => {
      if (!checked.broken || sound === undefined) return checked;
      return { ...sound, fragments: checked.fragments, problems: checked.problems };
    });
  }

  #report(problems: readonly SourceProblem[], atOnce: boolean): void {
    const text = JSON.stringify(problems);
    if (text === this.#reported && !atOnce) return;
    this.#reported = text;
    this.#sink?.report(problems);
  }
}

function isAtOrBelow(path: string, folder: string): boolean {
  const [inner, outer] = [resolve(path), resolve(folder)];
  return inner === outer || inner.startsWith(`${outer}${sep}`);
}

function faultProblem({ path, message }: { path: string; message: string }): SourceProblem {
  return { file: path, line: 1, column: 1, object: "", path: "", severity: "error", message, suggestion: "" };
}

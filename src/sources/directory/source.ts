/**
 * Objects from files and folders, followed as they change. In: paths. Out: events and problems. Not here: what objects
 * mean, and what is wrong with them (src/admission says that).
 */
import { resolve, sep } from "node:path";
import type { ObjectId } from "../../api/object.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { runInSlices } from "../../lib/slices.ts";
import type { Source, SourceProblem, SourceSink } from "../source.ts";
import { Assembly, byPlace, type FileState, keepHidden } from "./assemble.ts";
import { type CheckedFile, type CheckedObject, type Checks, checkFile } from "./check.ts";
import { type ReadFault, type Reading, type SourceFile, readPaths } from "./read.ts";
import { readAgain } from "./read-again.ts";
import { FolderWatch } from "./watch.ts";

export interface DirectorySourceOptions extends Checks {
  readonly paths: readonly string[];
  readonly log: Logger;
  /** How long an emptied file keeps its text, in case it is about to be written. */
  readonly emptySettleMs?: number;
}

/** Long enough for an editor to finish, short enough not to be felt. */
const SETTLE_MS = 20;
/** Where something changes all the time, this is how long the first change waits for the last. */
const SETTLE_AT_MOST_MS = 40;
/** The kernel drops what it cannot queue (16,384 events): after so many at once only a whole reading is to be trusted. */
const MAX_EVENTS_AT_ONCE = 8_192;
/** An emptied file is usually one that is about to be written. */
const EMPTY_SETTLE_MS = 150;
/** Where reading failed altogether, try again: nobody may ever touch the folder again. */
const RETRY_MS = 1_000;
/** Readings that may be left in a row because something changed. */
const MAX_LEFT = 5;

export interface DirectorySource extends Source {
  /** Every object that the files define, refused ones included. */
  objects(): readonly CheckedObject[];
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
  readonly state: FileState;
}

class FollowedPaths implements DirectorySource {
  readonly #options: DirectorySourceOptions;
  readonly #watch: FolderWatch;
  readonly #known: Map<string, Known> = new Map();
  readonly #assembly = new Assembly();
  #sink: SourceSink | undefined;
  /** What may have changed since the last reading began; undefined: anything. */
  #touched: Set<string> | undefined;
  #eventsAtOnce = 0;
  #plain: Reading["plain"];
  #faults: readonly ReadFault[] = [];
  #emptied: ReadonlySet<string> = new Set();
  #reported = "[]";
  #timer: NodeJS.Timeout | undefined;
  #firstChangeMs: number | undefined;
  #scanning: Promise<void> | undefined;
  #again = false;
  /** Readings in a row that were left because something had changed meanwhile. */
  #left = 0;
  /** Files that were checked by a reading that was left, by path: the next one need not check them again. */
  readonly #checked: Map<string, { readonly text: string; readonly file: CheckedFile }> = new Map();

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#watch = new FolderWatch((path) => this.#changed(path), options.log);
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
    const found = this.#assembly.find(id);
    return found === undefined ? undefined : { file: found.file, ...found.locate(path) };
  }

  objects(): readonly CheckedObject[] {
    return this.#assembly.objects();
  }

  #changed(path: string | undefined): void {
    if (this.#eventsAtOnce === 0) setImmediate(() => (this.#eventsAtOnce = 0));
    this.#eventsAtOnce += 1;
    if (path === undefined || this.#eventsAtOnce > MAX_EVENTS_AT_ONCE) this.#touched = undefined;
    else this.#touched?.add(path);
    this.#firstChangeMs ??= performance.now();
    const waitedMs = performance.now() - this.#firstChangeMs;
    this.#schedule(Math.max(0, Math.min(SETTLE_MS, SETTLE_AT_MOST_MS - waitedMs)));
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
          this.#touched = undefined;
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
    const touched = atOnce ? undefined : this.#touched;
    this.#touched = new Set();
    this.#firstChangeMs = undefined;
    const again =
      touched === undefined || this.#plain === undefined
        ? undefined
        : await readAgain(this.#plain, touched, (path) => this.#known.has(path));
    const isTaken =
      again === undefined
        ? await this.#takeAll(atOnce)
        : await this.#take(this.#withoutEmptied(again.files), again.gone, false);
    if (this.#sink === undefined) return;
    if (!isTaken) {
      // What was touched before the reading began is as unread as what was touched since.
      if (this.#touched !== undefined) {
        if (touched === undefined) this.#touched = undefined;
        else for (const path of touched) this.#touched.add(path);
      }
      return;
    }
    const events = this.#assembly.take();
    if (events.length > 0 || atOnce) this.#sink.apply(events);
    const faults = this.#faults.map((fault) => this.#problemOf(fault));
    this.#report([...this.#assembly.problemsWithEffects(), ...faults].sort(byPlace), atOnce);
  }

  /** @returns false when the reading was left, because something has changed meanwhile */
  async #takeAll(atOnce: boolean): Promise<boolean> {
    const { files, faults, folders, plain } = await readPaths(this.#options.paths);
    if (this.#sink === undefined) return false;
    // Watching starts after the listing that named the folder, so what a new folder holds is read once more.
    if (this.#watch.follow(folders)) {
      this.#again = true;
      this.#touched = undefined;
    }
    this.#plain = plain;
    this.#faults = faults;
    const present = new Set(files.map(({ path }) => path));
    // What exists but cannot be read now keeps what it said: a named path with all below it.
    const gone = [...this.#known.keys()].filter(
      (path) => !present.has(path) && !faults.some((fault) => isAtOrBelow(path, fault.path)),
    );
    return await this.#take(atOnce ? files : this.#withoutEmptied(files), gone, atOnce);
  }

  /** A file that just became empty keeps its text for one more round. */
  #withoutEmptied(files: readonly SourceFile[]): SourceFile[] {
    const asked = new Set(files.map(({ path }) => path));
    const emptied = new Set([...this.#emptied].filter((path) => !asked.has(path)));
    const kept = files.filter((file) => {
      const known = this.#known.get(file.path);
      if (file.text.trim() !== "" || known === undefined || known.text.trim() === "") return true;
      if (this.#emptied.has(file.path)) return true;
      emptied.add(file.path);
      return false;
    });
    this.#emptied = emptied;
    if (emptied.size > 0) setTimeout(() => this.#lookAgain(), this.#options.emptySettleMs ?? EMPTY_SETTLE_MS).unref();
    return kept;
  }

  #lookAgain(): void {
    this.#touched = undefined;
    this.#schedule(0);
  }

  /**
   * Checks what changed, leaving the event loop free, and then takes all of it in one step.
   * @returns false when it was left: nothing was taken then
   */
  async #take(files: readonly SourceFile[], gone: readonly string[], atOnce: boolean): Promise<boolean> {
    const changed = files.filter(({ path, text }) => this.#known.get(path)?.text !== text);
    for (const file of changed) {
      const kept = this.#checked.get(file.path);
      if (kept?.text === file.text) continue;
      const checked = await runInSlices(checkFile(file, this.#options), () => this.#isStale(atOnce));
      if (checked === undefined) {
        this.#left++;
        return false;
      }
      this.#checked.set(file.path, { text: file.text, file: checked });
    }
    this.#left = 0;
    for (const path of gone) {
      this.#known.delete(path);
      this.#assembly.put(path, undefined);
    }
    for (const { path, text } of changed) {
      const checked = this.#checked.get(path);
      if (checked === undefined) continue;
      const state = keepHidden(checked.file, this.#known.get(path)?.state);
      this.#known.set(path, { text, state });
      this.#assembly.put(path, state);
    }
    this.#checked.clear();
    return true;
  }

  /** Whether to begin anew. Not for ever: where something changes all the time, a reading must end as well. */
  #isStale(atOnce: boolean): boolean {
    return this.#sink === undefined || (!atOnce && this.#again && this.#left < MAX_LEFT);
  }

  #problemOf({ path, message }: ReadFault): SourceProblem {
    const effect = this.#assembly.effectOfUnreadable((file) => isAtOrBelow(file, path));
    return { file: path, line: 1, column: 1, object: "", path: "", severity: "error", message, suggestion: "", effect };
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

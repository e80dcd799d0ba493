/**
 * The directory source: reads objects from files and folders and follows changes. `gwproxy up` starts it through
 * runtime/manifests.ts. src/admission decides what is wrong with an object; this file decides when to read what.
 *
 * A change event starts a short debounce, then a scan. A scan reads either all paths or only the touched files, checks
 * them in time slices, and applies the result in one step:
 *
 *   event ──(20 ms quiet, at most 40 ms)──▶ scan ──▶ read all / read touched ──▶ check ──▶ assemble ──▶ sink.apply
 *     ▲                                      │                                    │
 *     └────── events during the scan ◀───────┴──── abandoned when files changed ◀─┘   (at most 5 times in a row)
 *
 * An abandoned scan merges the paths that it was going to read back into the touched paths; without that, their change
 * would be lost. `#touched` is undefined whenever the set of changed paths is not known; the next scan then reads
 * everything.
 */
import { resolve, sep } from "node:path";
import type { ObjectId } from "../../api/object.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { runInSlices } from "../../lib/slices.ts";
import type { Source, SourceDiagnostic, SourceSink } from "../source.ts";
import { Assembly, byPlace, type FileState, keepHidden } from "./assemble.ts";
import { type CheckedFile, type CheckedObject, type Checks, checkFile } from "./check.ts";
import { type PathError, type Reading, type SourceFile, readPaths } from "./read.ts";
import { readAgain } from "./read-again.ts";
import { FolderWatch } from "./watch.ts";

export interface DirectorySourceOptions extends Checks {
  readonly paths: readonly string[];
  readonly log: Logger;
  /** How long an emptied file keeps its previous text, because an editor may be about to write it. */
  readonly emptySettleMs?: number;
}

/** Debounce time: long enough for an editor to finish, too short for a user to notice. */
const SETTLE_MS = 20;
/** Upper limit of the debounce, for files that change all the time. */
const SETTLE_AT_MOST_MS = 40;
/**
 * Limit of events per event-loop turn. The kernel drops events that exceed its queue (16,384 for inotify), so a burst
 * of this size is followed by a full read.
 */
const MAX_EVENTS_AT_ONCE = 8_192;
/** Default of `emptySettleMs`: an emptied file is usually about to be written. */
const EMPTY_SETTLE_MS = 150;
/** Delay before a failed scan is repeated, since the folder may never change again. */
const RETRY_MS = 1_000;
/** Limit of consecutive scans that may be abandoned because files changed meanwhile. */
const MAX_LEFT = 5;

export interface DirectorySource extends Source {
  /** Returns every object that the files define, including refused ones. */
  objects(): readonly CheckedObject[];
  /** Reads everything again now. Resolves when the changes have been delivered. */
  reload(): Promise<void>;
  /** Returns the position of a field of an object; undefined when no file holds the object. */
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
  /** Paths that may have changed since the last scan began; undefined when anything may have changed. */
  #touched: Set<string> | undefined;
  #eventsAtOnce = 0;
  #plain: Reading["plain"];
  #errors: readonly PathError[] = [];
  #emptied: ReadonlySet<string> = new Set();
  #reported = "[]";
  #timer: NodeJS.Timeout | undefined;
  #firstChangeMs: number | undefined;
  #scanning: Promise<void> | undefined;
  #again = false;
  /** Number of consecutive scans that were abandoned because files changed meanwhile. */
  #left = 0;
  /** Results of checks from abandoned scans, by path, so that the next scan need not repeat them. */
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

  /** Records a change and restarts the debounce. `#eventsAtOnce` counts the events of one turn of the event loop. */
  #changed(path: string | undefined): void {
    if (this.#eventsAtOnce === 0) setImmediate(() => (this.#eventsAtOnce = 0));
    this.#eventsAtOnce += 1;
    if (path === undefined || this.#eventsAtOnce > MAX_EVENTS_AT_ONCE) this.#touched = undefined;
    else this.#touched?.add(path);
    this.#firstChangeMs ??= performance.now();
    const waitedMs = performance.now() - this.#firstChangeMs;
    this.#schedule(Math.max(0, Math.min(SETTLE_MS, SETTLE_AT_MOST_MS - waitedMs)));
  }

  /**
   * Starts a scan after a delay. While one is running it only sets `#again`, so that scans never overlap; `#finished`
   * then schedules the next one.
   */
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

  /** @param atOnce accepts the current state without waiting, and reports even when nothing changed */
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
      // The scan was abandoned: the paths that it should have read are still unread, as are those that changed since.
      if (this.#touched !== undefined) {
        if (touched === undefined) this.#touched = undefined;
        else for (const path of touched) this.#touched.add(path);
      }
      return;
    }
    const events = this.#assembly.take();
    if (events.length > 0 || atOnce) this.#sink.apply(events);
    const errors = this.#errors.map((error) => this.#diagnosticOf(error));
    this.#report([...this.#assembly.diagnosticsWithEffects(), ...errors].sort(byPlace), atOnce);
  }

  /**
   * Reads all paths.
   * @returns false when the scan was abandoned because files changed meanwhile
   */
  async #takeAll(atOnce: boolean): Promise<boolean> {
    const { files, errors, folders, plain } = await readPaths(this.#options.paths);
    if (this.#sink === undefined) return false;
    // Watching starts after the listing that found the folder, so the content of a new folder is read once more.
    if (this.#watch.follow(folders)) {
      this.#again = true;
      this.#touched = undefined;
    }
    this.#plain = plain;
    this.#errors = errors;
    const present = new Set(files.map(({ path }) => path));
    // A path that exists but cannot be read now keeps its previous content, and so does everything below it.
    const gone = [...this.#known.keys()].filter(
      (path) => !present.has(path) && !errors.some((error) => isAtOrBelow(path, error.path)),
    );
    return await this.#take(atOnce ? files : this.#withoutEmptied(files), gone, atOnce);
  }

  /** Leaves out files that just became empty; they keep their previous text for one more scan. */
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
   * Checks the changed files in time slices that leave the event loop free, and then applies all of them in one step.
   * @returns false when the scan was abandoned, in which case nothing was applied
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

  /** Whether to abandon the scan. The limit lets a scan end even when files change all the time. */
  #isStale(atOnce: boolean): boolean {
    return this.#sink === undefined || (!atOnce && this.#again && this.#left < MAX_LEFT);
  }

  #diagnosticOf({ path, message }: PathError): SourceDiagnostic {
    const effect = this.#assembly.effectOfUnreadable((file) => isAtOrBelow(file, path));
    return { file: path, line: 1, column: 1, object: "", path: "", severity: "error", message, suggestion: "", effect };
  }

  #report(diagnostics: readonly SourceDiagnostic[], atOnce: boolean): void {
    const text = JSON.stringify(diagnostics);
    if (text === this.#reported && !atOnce) return;
    this.#reported = text;
    this.#sink?.report(diagnostics);
  }
}

function isAtOrBelow(path: string, folder: string): boolean {
  const [inner, outer] = [resolve(path), resolve(folder)];
  return inner === outer || inner.startsWith(`${outer}${sep}`);
}

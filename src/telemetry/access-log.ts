/**
 * The access log of the process: one line per request (docs/access-log.md), collected and written in batches every 20
 * ms or 64 Ki characters. When the reader stalls, lines are kept up to 4 Mi characters; further ones are dropped and
 * counted. Requests never wait.
 */
import { isEnabled, type LogFilter } from "../lib/log.ts";
import type { AttributeSink } from "./attributes.ts";
import { type Clocks, LineClock } from "./line-clock.ts";
import { createLineForm, type LogFormat } from "./log-lines.ts";

/** Produces the fields of a line. */
interface LineContent<Subject> {
  /** @param debug true to include the fields of debug lines */
  addTo(sink: AttributeSink, subject: Subject, debug: boolean): void;
}

export type LineLevel = "off" | "info" | "debug";

/** Access log lines belong to the log module `request`. */
export function lineLevel(filter: LogFilter): LineLevel {
  if (!isEnabled(filter, "request", "info")) return "off";
  return isEnabled(filter, "request", "debug") ? "debug" : "info";
}

export interface AccessLog {
  /** "off" when lines are disabled; callers then skip building them. */
  readonly level: LineLevel;
  write<Subject>(content: LineContent<Subject>, subject: Subject): void;
  /** Writes the collected lines. */
  flush(): void;
  close(): void;
}

export interface AccessLogOptions {
  readonly format: LogFormat;
  /** @returns false to pause until `onReady` calls back */
  readonly write: (lines: string) => boolean;
  /** Registers the callback for when the writer accepts lines again. */
  readonly onReady?: (resume: () => void) => void;
  /** Called with the number of lines that were dropped because the writer was too slow. */
  readonly onDropped?: (lines: number) => void;
  readonly level?: () => LineLevel;
  readonly clocks?: Clocks;
  readonly delayMs?: number;
}

const DELAY_MS = 20;
const BATCH_CHARACTERS = 65_536;
const MAX_CHARACTERS = 4_194_304;

export function createAccessLog(options: AccessLogOptions): AccessLog {
  return new BatchedLog(options);
}

class BatchedLog implements AccessLog {
  readonly #options: AccessLogOptions;
  readonly #clock: LineClock;
  readonly #form: ReturnType<typeof createLineForm>;
  #pending = "";
  #isStalled = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#clock = new LineClock(options.clocks);
    this.#form = createLineForm(options.format);
  }

  get level(): LineLevel {
    return this.#options.level?.() ?? "info";
  }

  write<Subject>(content: LineContent<Subject>, subject: Subject): void {
    const { level } = this;
    if (level === "off") return;
    if (this.#pending.length > MAX_CHARACTERS) {
      this.#options.onDropped?.(1);
      return;
    }
    this.#form.begin(this.#clock.now());
    content.addTo(this.#form, subject, level === "debug");
    this.#pending += this.#form.end();
    if (this.#pending.length >= BATCH_CHARACTERS) this.flush();
    else this.#timer ??= setTimeout(this.flush.bind(this), this.#options.delayMs ?? DELAY_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending === "" || this.#isStalled) return;
    const lines = this.#pending;
    this.#pending = "";
    if (this.#options.write(lines)) return;
    this.#isStalled = this.#options.onReady !== undefined;
    this.#options.onReady?.(() => {
      this.#isStalled = false;
      this.flush();
    });
  }

  close(): void {
    this.#isStalled = false;
    this.flush();
  }
}

/**
 * The access log: one line per request (observability.md 1), gathered and written in batches. A reader that stalls
 * costs lines, never requests.
 */
import { isEnabled, type LogFilter } from "../lib/log.ts";
import type { AttributeSink } from "./attributes.ts";
import { type Clocks, LineClock } from "./line-clock.ts";
import { createLineForm, type LogFormat } from "./log-lines.ts";

/** Knows what stands in a line about something. */
interface LineContent<Subject> {
  /** @param debug with what only a line for debugging holds */
  addTo(sink: AttributeSink, subject: Subject, debug: boolean): void;
}

export type LineLevel = "off" | "info" | "debug";

/** Lines are those of the module `request`. */
export function lineLevel(filter: LogFilter): LineLevel {
  if (!isEnabled(filter, "request", "info")) return "off";
  return isEnabled(filter, "request", "debug") ? "debug" : "info";
}

export interface AccessLog {
  /** "off": nobody wants lines at the moment, so none need be made. */
  readonly level: LineLevel;
  write<Subject>(content: LineContent<Subject>, subject: Subject): void;
  /** Hands over what is gathered. */
  flush(): void;
  close(): void;
}

export interface AccessLogOptions {
  readonly format: LogFormat;
  /** @returns false when it wants no more until it said so by `ready` */
  readonly write: (lines: string) => boolean;
  /** Registers what to call when the writer takes lines again. */
  readonly onReady?: (resume: () => void) => void;
  /** Called with the number of lines that were given up because the writer did not keep up. */
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

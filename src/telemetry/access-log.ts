/**
 * The access log: one JSON line per request (observability.md 1), gathered and written in batches. A reader that stalls
 * costs lines, never requests.
 */

export type AccessRecord = Readonly<Record<string, string | number | boolean | undefined>>;

export interface AccessLog {
  /** False: nobody wants lines at the moment, so none need be made. */
  readonly enabled: boolean;
  write(record: AccessRecord): void;
  /** Hands over what is gathered. */
  flush(): void;
  /** Lines that were given up because the writer did not keep up. */
  readonly dropped: number;
  close(): void;
}

export interface AccessLogOptions {
  /** @returns false when it wants no more until it said so by `ready` */
  readonly write: (lines: string) => boolean;
  /** Registers what to call when the writer takes lines again. */
  readonly onReady?: (resume: () => void) => void;
  readonly enabled?: () => boolean;
  readonly now?: () => Date;
  readonly delayMs?: number;
}

const DELAY_MS = 20;
const BATCH_CHARACTERS = 65_536;
const MAX_CHARACTERS = 4_194_304;

export function createAccessLog(options: AccessLogOptions): AccessLog {
  const now = options.now ?? (() => new Date());
  let pending = "";
  let dropped = 0;
  let stalled = false;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (pending === "" || stalled) return;
    const lines = pending;
    pending = "";
    if (options.write(lines)) return;
    stalled = options.onReady !== undefined;
    options.onReady?.(() => {
      stalled = false;
      flush();
    });
  };
  return {
    get enabled() {
      return options.enabled?.() !== false;
    },
    write(record) {
      if (!this.enabled) return;
      if (pending.length > MAX_CHARACTERS) {
        dropped++;
        return;
      }
      pending += `${JSON.stringify({ level: "info", time: now().toISOString(), scope: "request", ...record })}\n`;
      if (pending.length >= BATCH_CHARACTERS) flush();
      else timer ??= setTimeout(flush, options.delayMs ?? DELAY_MS);
    },
    flush,
    get dropped() {
      return dropped;
    },
    close() {
      stalled = false;
      flush();
    },
  };
}

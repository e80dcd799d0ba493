/**
 * Writes structured log lines to stderr, one JSON object per line. Modules receive a Logger; there is no global one.
 */

const LOG_LEVELS = ["off", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  trace(message: string, fields?: LogFields): void;
  /** Returns a logger whose lines carry `module`, and whose level can be set separately. */
  child(module: string): Logger;
}

/** A default level with exceptions per module. All loggers of a process share it, and it changes at run time. */
export interface LogFilter {
  level: LogLevel;
  modules: ReadonlyMap<string, LogLevel>;
}

/** Parses a filter such as `info,proxy=debug`, or `info,proxy:debug`. @returns undefined when the text is not a filter */
export function parseLogFilter(text: string): LogFilter | undefined {
  let level: LogLevel | undefined;
  const modules = new Map<string, LogLevel>();
  for (const part of text.split(",")) {
    const [name, value, rest] = part.trim().split(/[=:]/);
    if (rest !== undefined || name === undefined || name === "") return undefined;
    if (value === undefined) {
      if (!isLogLevel(name) || level !== undefined) return undefined;
      level = name;
    } else {
      if (!isLogLevel(value)) return undefined;
      modules.set(name, value);
    }
  }
  return { level: level ?? "info", modules };
}

/** Prints a filter so that parseLogFilter reads it back. */
export function printLogFilter(filter: LogFilter): string {
  return [filter.level, ...[...filter.modules].map(([module, level]) => `${module}=${level}`)].join(",");
}

export function isEnabled(filter: LogFilter, module: string, level: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(filter.modules.get(module) ?? filter.level);
}

export function createLogger(filter: LogFilter, write: (line: string) => void, module = ""): Logger {
  const log =
    (level: Exclude<LogLevel, "off">) =>
    (message: string, fields?: LogFields): void => {
      if (!isEnabled(filter, module, level)) return;
      const time = new Date().toISOString();
      write(`${JSON.stringify({ time, level, ...(module === "" ? {} : { module }), message, ...fields })}\n`);
    };
  return {
    error: log("error"),
    warn: log("warn"),
    info: log("info"),
    debug: log("debug"),
    trace: log("trace"),
    child: (name) => createLogger(filter, write, name),
  };
}

function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

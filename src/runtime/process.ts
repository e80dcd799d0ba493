/** Helpers that every long-running command needs: a log, the signal to stop, and the printed form of addresses. */
import { isIPv6 } from "node:net";
import { createLogger, type LogFilter, type Logger, parseLogFilter } from "../lib/log.ts";

export interface ProcessLog {
  readonly log: Logger;
  readonly filter: LogFilter;
}

/** Creates the log of a process. Lines go to stderr, so that stdout stays free for the output of the command. */
export function createProcessLog(filterText: string): ProcessLog {
  const filter = parseLogFilter(filterText) ?? { level: "info" as const, modules: new Map() };
  return { filter, log: createLogger(filter, (line) => void process.stderr.write(line)) };
}

/** Resolves on SIGINT or SIGTERM. A second signal ends the process at once. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve();
      });
    }
  });
}

/** Formats an address as "127.0.0.1:80" or "[::]:80". */
export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Whether traffic to the address stays on this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Access-log lines on their way to stdout. A reader that stalls makes their writer wait, and one that has gone costs the
 * lines: neither may end or hold up the process that serves.
 */
import type { Writable } from "node:stream";
import type { Logger } from "../lib/log.ts";

export interface LineOutput {
  /** @returns false when there is no room for more until `onRoom` */
  write(lines: string): boolean;
  /** Calls back once, when there is room for more. */
  onRoom(callback: () => void): void;
  /** Resolves when there is room for more. */
  written(lines: string): Promise<void>;
  /** From now on nobody waits for a reader that takes nothing. */
  end(): void;
}

/** After the end, for a reader that is only slow. */
const PATIENCE_MS = 3_000;

/** @param onDropped called with the number of lines that nobody will read */
export function createLineOutput(stream: Writable, log: Logger, onDropped: (lines: number) => void): LineOutput {
  let isGone = false;
  let waiting: (() => void)[] = [];
  const roomAgain = (): void => {
    const all = waiting;
    waiting = [];
    for (const callback of all) callback();
  };
  stream.on("drain", roomAgain);
  // Without a listener the error of a reader that has gone would be the end of the process.
  stream.on("error", (error) => {
    if (!isGone) log.error("nobody reads the access log any more; its lines are dropped", { error: error.message });
    isGone = true;
    roomAgain();
  });
  const write = (lines: string): boolean => {
    if (!isGone) return stream.write(lines);
    onDropped(countOf(lines));
    return true;
  };
  return {
    write,
    onRoom: (callback) => void waiting.push(callback),
    written: (lines) => (write(lines) ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))),
    end() {
      // Lines that are not taken keep the process alive, and with it this timer, which alone would not.
      setTimeout(() => {
        if (stream.writableLength > 0) process.exit();
      }, PATIENCE_MS).unref();
    },
  };
}

function countOf(lines: string): number {
  let count = 0;
  for (let at = lines.indexOf("\n"); at >= 0; at = lines.indexOf("\n", at + 1)) count++;
  return count;
}

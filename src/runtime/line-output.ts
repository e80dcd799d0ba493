/**
 * Writes access log lines to stdout with backpressure. data-plane.ts uses it. A slow reader makes the writer wait, and
 * a reader that closed its end costs the lines; neither may end or block the process that serves.
 */
import type { Writable } from "node:stream";
import type { Logger } from "../lib/log.ts";

export interface LineOutput {
  /** @returns false when the stream is full until `onRoom` */
  write(lines: string): boolean;
  /** Calls back once, when the stream can take more. */
  onRoom(callback: () => void): void;
  /** Resolves when the stream can take more. */
  written(lines: string): Promise<void>;
  /** Exits the process after a while if the reader still does not take the remaining lines. */
  end(): void;
}

/** Time after `end` that a slow reader has to take the remaining lines. */
const PATIENCE_MS = 3_000;

/** @param onDropped called with the number of lines that were dropped */
export function createLineOutput(stream: Writable, log: Logger, onDropped: (lines: number) => void): LineOutput {
  let isGone = false;
  let waiting: (() => void)[] = [];
  const roomAgain = (): void => {
    const all = waiting;
    waiting = [];
    for (const callback of all) callback();
  };
  stream.on("drain", roomAgain);
  // Without a listener, the error of a closed pipe (EPIPE) would end the process.
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
      // Pending writes keep the process alive and so let this unreferenced timer fire; without them the process exits
      // earlier.
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

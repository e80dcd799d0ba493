/** A logger for tests that records its lines and prints none. */
import { createLogger, type Logger } from "../../../src/lib/log.ts";

export function recordingLog(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  return { log: createLogger({ level: "trace", modules: new Map() }, (line) => lines.push(line)), lines };
}

/**
 * Maps places of compiled code to its sources, by the maps beside the compiled files. Profiles show what people wrote.
 */
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProfileFrame } from "./capture.ts";

export interface SourcePosition {
  readonly file: string;
  /** Counted from one. */
  readonly line: number;
}

export class SourcePositions {
  readonly #maps = new Map<string, SourceMap | undefined>();

  find({ url, lineNumber, columnNumber }: ProfileFrame): SourcePosition {
    if (!url.startsWith("file://")) return { file: url, line: lineNumber + 1 };
    const file = fileURLToPath(url);
    const entry = this.#mapOf(file)?.findEntry(lineNumber, columnNumber);
    if (entry === undefined || !("originalSource" in entry)) return { file, line: lineNumber + 1 };
    return { file: normalize(join(dirname(file), entry.originalSource)), line: entry.originalLine + 1 };
  }

  #mapOf(file: string): SourceMap | undefined {
    if (!this.#maps.has(file)) this.#maps.set(file, readMap(file));
    return this.#maps.get(file);
  }
}

/** @returns undefined for a file without a map: sources run as they are in a checkout */
function readMap(file: string): SourceMap | undefined {
  if (!file.endsWith(".js")) return undefined;
  try {
    // tsc wrote it; what is no map fails in the constructor.
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")) as ConstructorParameters<typeof SourceMap>[0]);
  } catch {
    return undefined;
  }
}

/**
 * Remembers texts that were found sound: an update repeats most of its object, and an apply may be sent again. They are kept
 * as digests, because they may be long and hold secrets; faults are not kept, because their messages quote the text.
 */
import { hash } from "node:crypto";

/** In two generations: what the younger has no room for pushes out the older one, and a text that is asked for moves up. */
export class ValidatedTextCache {
  readonly #most: number;
  #young = new Set<string>();
  #old = new Set<string>();

  /** @param most of one generation; each text takes about 150 bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * @param rules what the text was held against: it may be sound by some and not by others
   * @param check called for texts that are not known. @returns what it found
   */
  check<T>(rules: string, text: string, check: () => readonly T[]): readonly T[] {
    const key = `${rules} ${hash("sha256", text, "base64")}`;
    if (this.#young.has(key)) return [];
    const faults = this.#old.has(key) ? [] : check();
    if (faults.length === 0) this.#remember(key);
    return faults;
  }

  #remember(key: string): void {
    if (this.#young.size >= this.#most) {
      this.#old = this.#young;
      this.#young = new Set();
    }
    this.#young.add(key);
  }
}

/**
 * Remembers texts that passed a check. expressions.ts and patterns.ts use it: an update repeats most of its object, and
 * an apply may be sent again. The cache stores digests, because the texts may be long and hold secrets. It does not
 * store errors, because their messages quote the text.
 */
import { hash } from "node:crypto";

/**
 * A two-generation approximation of an LRU cache. When the young generation is full it becomes the old one, and the
 * previous old one is dropped; a lookup moves a text back to the young generation. This needs no list of uses.
 */
export class ValidatedTextCache {
  readonly #most: number;
  #young = new Set<string>();
  #old = new Set<string>();

  /** @param most size of one generation; each text takes about 150 bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * @param rules the rules that the text was checked against; it may pass some and fail others
   * @param check called for unknown texts
   * @returns what `check` found
   */
  check<T>(rules: string, text: string, check: () => readonly T[]): readonly T[] {
    const key = `${rules} ${hash("sha256", text, "base64")}`;
    if (this.#young.has(key)) return [];
    const violations = this.#old.has(key) ? [] : check();
    if (violations.length === 0) this.#remember(key);
    return violations;
  }

  #remember(key: string): void {
    if (this.#young.size >= this.#most) {
      this.#old = this.#young;
      this.#young = new Set();
    }
    this.#young.add(key);
  }
}

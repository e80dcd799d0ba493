/**
 * Bounds the number of distinct label values that clients choose; values beyond the bound become "other". Without it, a
 * client could create series until the memory is full. Used by series.ts.
 */

/** Replaces the values beyond the bound. */
export const OTHER = "other";

const MAX_LENGTH = 128;

export class LabelBounds {
  readonly #maxDistinct: number;
  /** Keyed by the name of the label. */
  readonly #seen = new Map<string, Set<string>>();

  constructor(maxDistinct: number) {
    this.#maxDistinct = maxDistinct;
  }

  admit(label: string, value: string): string {
    const values = this.#valuesOf(label);
    const cut = cutValue(value);
    if (values.has(cut)) return cut;
    if (values.size >= this.#maxDistinct) return OTHER;
    values.add(cut);
    return cut;
  }

  /**
   * Reserves a value of the configuration, so that it is counted by name regardless of the values that clients used up.
   */
  reserve(label: string, value: string): void {
    this.#valuesOf(label).add(cutValue(value));
  }

  /** Returns whether the value was admitted or reserved before. */
  has(label: string, value: string): boolean {
    return this.#seen.get(label)?.has(cutValue(value)) === true;
  }

  #valuesOf(label: string): Set<string> {
    let values = this.#seen.get(label);
    if (values === undefined) this.#seen.set(label, (values = new Set()));
    return values;
  }
}

/** Cuts the value without splitting a surrogate pair. */
function cutValue(value: string): string {
  if (value.length <= MAX_LENGTH) return value;
  const last = value.charCodeAt(MAX_LENGTH - 1);
  const half = last >= 0xd800 && last <= 0xdbff;
  return value.slice(0, half ? MAX_LENGTH - 1 : MAX_LENGTH);
}

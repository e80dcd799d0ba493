/** Values of labels that clients choose must not fill the memory: beyond a number of distinct ones they are "other" (used by rows.ts). */

/** What stands for the values beyond the bound. */
export const OTHER = "other";

const MAX_LENGTH = 128;

export class LabelBounds {
  readonly #maxDistinct: number;
  /** By the name of the label. */
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

  /** Tells a value of the configuration apart, however many values clients have brought. */
  reserve(label: string, value: string): void {
    this.#valuesOf(label).add(cutValue(value));
  }

  /** Whether the value is one that was admitted or reserved before. */
  has(label: string, value: string): boolean {
    return this.#seen.get(label)?.has(cutValue(value)) === true;
  }

  #valuesOf(label: string): Set<string> {
    let values = this.#seen.get(label);
    if (values === undefined) this.#seen.set(label, (values = new Set()));
    return values;
  }
}

/** A character of two halves that lies across the limit is left out. */
function cutValue(value: string): string {
  if (value.length <= MAX_LENGTH) return value;
  const last = value.charCodeAt(MAX_LENGTH - 1);
  const half = last >= 0xd800 && last <= 0xdbff;
  return value.slice(0, half ? MAX_LENGTH - 1 : MAX_LENGTH);
}

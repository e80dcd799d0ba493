/** Values of labels that clients choose must not fill the memory: beyond a number of distinct ones they are "other". */

/** What stands for the values beyond the bound. */
export const OTHER = "other";

const MAX_DISTINCT = 1000;
const MAX_LENGTH = 128;

export class LabelBounds {
  /** By the name of the label. */
  readonly #seen = new Map<string, Set<string>>();

  admit(label: string, value: string): string {
    let values = this.#seen.get(label);
    if (values === undefined) this.#seen.set(label, (values = new Set()));
    const cut = cutValue(value);
    if (values.has(cut)) return cut;
    if (values.size >= MAX_DISTINCT) return OTHER;
    values.add(cut);
    return cut;
  }
}

/** A character of two halves that lies across the limit is left out. */
function cutValue(value: string): string {
  if (value.length <= MAX_LENGTH) return value;
  const last = value.charCodeAt(MAX_LENGTH - 1);
  const half = last >= 0xd800 && last <= 0xdbff;
  return value.slice(0, half ? MAX_LENGTH - 1 : MAX_LENGTH);
}

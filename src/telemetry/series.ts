/**
 * The series of one group of metrics: a row for each combination of label values, with the numbers of all counters and
 * histograms that share the labels. One look-up per request therefore serves all of them. Values that clients choose
 * are bounded twice: by distinct values per label (label-bounds.ts), and by the number of rows.
 */
import { OTHER, type LabelBounds } from "./label-bounds.ts";
import { SEPARATOR } from "./label-value.ts";

/** Plain data: the counts of a row, as sent between threads. */
export interface CountedRow {
  readonly values: readonly string[];
  readonly seen: number;
  readonly numbers: readonly number[];
}

export class Row {
  /** Values of the labels in order, then alternating names and values of further labels. */
  readonly values: readonly string[];
  readonly numbers: number[];
  /** One bit for each metric that has a number here. */
  seen = 0;
  /** The row of another group for the same request, cached after its first look-up. */
  partner: Row | undefined = undefined;
  #text: string | undefined;

  constructor(values: readonly string[], size: number) {
    this.values = values;
    this.numbers = Array.from({ length: size }, () => 0);
  }

  /**
   * Returns the labels as printed.
   * @param labels names of the first values
   */
  text(labels: readonly string[]): string {
    return (this.#text ??= labelText(labels, this.values));
  }
}

/** Limit of rows; beyond it, values that clients choose become "other". */
const MAX_ROWS = 10_000;

export class Rows {
  readonly labels: readonly string[];
  readonly all: Map<string, Row> = new Map();
  readonly #bounds: LabelBounds;
  /** Indexes of the labels whose values clients choose; all further labels count as such. */
  readonly #chosen: ReadonlySet<number>;
  #size = 0;
  /** Incremented when rows are removed: a cached row must then be looked up again. */
  era = 0;

  constructor(labels: readonly string[], clientChosen: readonly string[], bounds: LabelBounds) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#chosen = new Set(clientChosen.map((label) => labels.indexOf(label)));
  }

  /** @returns the index at which the numbers of one more metric begin in a row */
  reserve(numbers: number): number {
    const at = this.#size;
    this.#size += numbers;
    return at;
  }

  /** @param values as in a Row */
  find(values: readonly string[]): Row {
    return this.all.get(values.join(SEPARATOR)) ?? this.#admit(values);
  }

  take(): CountedRow[] {
    const moved = Array.from(this.all.values(), ({ values, seen, numbers }) => ({ values, seen, numbers }));
    this.all.clear();
    this.era++;
    return moved;
  }

  add(moved: readonly CountedRow[]): void {
    for (const { values, seen, numbers } of moved) {
      const row = this.find(values);
      row.seen |= seen;
      for (const [at, number] of numbers.entries()) row.numbers[at] = (row.numbers[at] ?? 0) + number;
    }
  }

  /** Returns the rows that have a number of the metric. */
  seen(bit: number): Row[] {
    return [...this.all.values()].filter((row) => (row.seen & bit) !== 0);
  }

  /** Returns the value of the label in each row; empty when the group does not have the label. */
  valuesOf(label: string): string[] {
    const at = this.labels.indexOf(label);
    return at < 0 ? [] : Array.from(this.all.values(), ({ values }) => values[at] ?? "");
  }

  /** Removes the rows with such a value of the label. */
  forget(label: string, values: ReadonlySet<string>): void {
    const at = this.labels.indexOf(label);
    if (at < 0) return;
    for (const [key, row] of this.all) if (values.has(row.values[at] ?? "")) this.all.delete(key);
    this.era++;
  }

  #admit(values: readonly string[]): Row {
    const bounded = this.#choose(values, (label, value) => this.#bounds.admit(label, value));
    const known = this.all.get(bounded.join(SEPARATOR));
    if (known !== undefined) return known;
    const kept = this.all.size < MAX_ROWS ? bounded : this.#choose(values, () => OTHER);
    const key = kept.join(SEPARATOR);
    let row = this.all.get(key);
    if (row === undefined) this.all.set(key, (row = new Row(kept, this.#size)));
    return row;
  }

  /** Replaces the values that clients have chosen. */
  #choose(values: readonly string[], choose: (label: string, value: string) => string): string[] {
    const { length } = this.labels;
    return values.map((value, at) => {
      if (at < length) return this.#chosen.has(at) ? choose(this.labels[at] ?? "", value) : value;
      return (at - length) % 2 === 0 ? value : choose(values[at - 1] ?? "", value);
    });
  }
}

/** Caches the row of label values that never change. */
export class Series {
  readonly #rows: Rows;
  readonly #values: readonly string[];
  #row: Row | undefined;
  #era = 0;

  constructor(rows: Rows, values: readonly string[]) {
    this.#rows = rows;
    this.#values = values;
  }

  get row(): Row {
    if (this.#row === undefined || this.#era !== this.#rows.era) {
      this.#row = this.#rows.find(this.#values);
      this.#era = this.#rows.era;
    }
    return this.#row;
  }
}

export function labelText(labels: readonly string[], values: readonly string[]): string {
  const pairs = labels.map((label, at) => pair(label, values[at] ?? ""));
  for (let at = labels.length; at < values.length; at += 2) pairs.push(pair(values[at] ?? "", values[at + 1] ?? ""));
  return pairs.join(",");
}

function pair(label: string, value: string): string {
  return `${label}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

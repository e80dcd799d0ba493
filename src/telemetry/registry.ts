/**
 * Counters and histograms with labels, and values that are read on demand, printed in the formats of Prometheus. The
 * metrics of data planes and controllers are built on it.
 *
 * Each thread has a registry of its own and counts without synchronisation. Worker threads hand their counts to the
 * main thread periodically: `take` empties the counts and `add` merges them; `observations` and `replaceObservations`
 * do the same for values that are read.
 */
import {
  printCounter,
  printEnd,
  printHead,
  printHistogram,
  printObservation,
  type MetricFormat,
  type Observation,
} from "./exposition.ts";
import { LabelBounds } from "./label-bounds.ts";
import { Rows, Series, type CountedRow, type Row } from "./series.ts";
import type { HistogramSpec, MetricGroup, ObservableSpec } from "./metric-table.ts";

/** All metrics that share one set of labels. */
export interface Group<Counters extends string, Histograms extends string> {
  /** @param values of the labels in order, then alternating names and values of further labels */
  row(values: readonly string[]): Row;
  /** Returns a cached row for values that do not change. */
  series(values: readonly string[]): Series;
  readonly counters: Readonly<Record<Counters, Counter>>;
  readonly histograms: Readonly<Record<Histograms, Histogram>>;
}

/** Plain data: the counts by group, keyed by the metrics of the group. */
export type Counted = readonly (readonly [group: string, rows: readonly CountedRow[]])[];

/** Plain data: the values of a thread, by the name of the metric. */
export type Observations = readonly (readonly [name: string, readings: readonly Observation[]])[];

/** The value of one series, for readers inside of the process. */
export interface Reading {
  readonly labels: Readonly<Record<string, string>>;
  /** The number of a counter or gauge; the sum of a histogram. */
  readonly value: number;
  /** How many values a histogram has observed; 0 for others. */
  readonly count: number;
}

export class Counter {
  readonly at: number;
  readonly bit: number;

  /**
   * @param at index of its number in a row
   * @param rank among the metrics of its group
   */
  constructor(at: number, rank: number) {
    this.at = at;
    this.bit = 1 << rank;
  }

  add(row: Row, amount: number): void {
    row.numbers[this.at] = (row.numbers[this.at] ?? 0) + amount;
    row.seen |= this.bit;
  }
}

export class Histogram {
  readonly bounds: readonly number[];
  /** Index of its numbers: a count for each bound, then the sum, then the total count. */
  readonly at: number;
  readonly bit: number;

  constructor(at: number, rank: number, bounds: readonly number[]) {
    this.at = at;
    this.bit = 1 << rank;
    this.bounds = bounds;
  }

  observe(row: Row, value: number): void {
    const { at, bounds } = this;
    const { numbers } = row;
    const { length } = bounds;
    let rank = 0;
    while (rank < length && value > (bounds[rank] as number)) rank++; // within the bounds
    if (rank < length) numbers[at + rank] = (numbers[at + rank] ?? 0) + 1;
    numbers[at + length] = (numbers[at + length] ?? 0) + value;
    numbers[at + length + 1] = (numbers[at + length + 1] ?? 0) + 1;
    row.seen |= this.bit;
  }
}

interface Known {
  readonly spec: ObservableSpec;
  read: () => Iterable<Observation>;
}

/**
 * Limits of distinct values for labels that clients choose. A histogram prints a line for each bucket, so its limit is
 * lower.
 */
const MAX_COUNTER_VALUES = 1000;
const MAX_HISTOGRAM_VALUES = 100;

export class Registry {
  readonly #prefix: string;
  readonly #counterBounds = new LabelBounds(MAX_COUNTER_VALUES);
  readonly #histogramBounds = new LabelBounds(MAX_HISTOGRAM_VALUES);
  readonly #groups = new Map<string, Rows>();
  readonly #printers: ((format: MetricFormat) => string)[] = [];
  readonly #readers = new Map<string, () => Reading[]>();
  readonly #known = new Map<string, Known>();
  /** The latest values of other threads. */
  readonly #observed = new Map<string, ReadonlyMap<string, readonly Observation[]>>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  group<Counters extends string, Histograms extends string>(
    spec: MetricGroup<Counters, Histograms>,
  ): Group<Counters, Histograms> {
    const { labels, clientChosen, counters, histograms } = spec;
    const bounds = Object.keys(counters).length > 0 ? this.#counterBounds : this.#histogramBounds;
    const rows = new Rows(labels, clientChosen ?? [], bounds);
    // Keyed by metrics instead of labels, because two groups may have the same labels.
    this.#groups.set([...Object.keys(counters), ...Object.keys(histograms)].join(","), rows);
    let rank = 0;
    const counting = Object.entries<string>(counters).map(
      ([name, help]) => [name, this.#counter(rows, { name, help, rank: rank++ })] as const,
    );
    const measuring = Object.entries<HistogramSpec>(histograms).map(([name, { help, bounds }]) => {
      const histogram = new Histogram(rows.reserve(bounds.length + 2), rank++, bounds);
      this.#printHistograms(rows, { name, help, histogram });
      return [name, histogram] as const;
    });
    const group: Group<string, string> = {
      row: rows.find.bind(rows),
      series: (values) => new Series(rows, values),
      counters: Object.fromEntries(counting),
      histograms: Object.fromEntries(measuring),
    };
    // The cast is sound: the names are those of the spec.
    return group as Group<Counters, Histograms>;
  }

  /**
   * Registers a callback for a value that is read when the metrics are printed; a later call with the same name
   * replaces the callback.
   */
  observe(name: string, spec: ObservableSpec, read: () => Iterable<Observation>): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.read = read;
    else {
      const added = { spec, read };
      this.#known.set(name, added);
      this.#printers.push((format) => this.#printObservations(name, added, format));
      this.#readers.set(name, () =>
        this.#observations(name, added).map(({ values, value }) => ({
          labels: labelsOf(spec.labels, values),
          value,
          count: 0,
        })),
      );
    }
  }

  print(format: MetricFormat): string {
    return this.#printers.map((print) => print(format)).join("") + printEnd(format);
  }

  /** Returns the series of one metric, whose name has no prefix; empty for an unknown name. */
  read(name: string): readonly Reading[] {
    return this.#readers.get(name)?.() ?? [];
  }

  /** Returns and resets all counts, for `add` of another thread's registry with the same groups. */
  take(): Counted {
    return Array.from(this.#groups, ([group, rows]) => [group, rows.take()] as const).filter(
      ([, rows]) => rows.length > 0,
    );
  }

  add(counted: Counted): void {
    for (const [group, rows] of counted) this.#groups.get(group)?.add(rows);
  }

  /** Reserves a value of the configuration in all histograms, regardless of the values that clients used up. */
  reserve(label: string, value: string): void {
    this.#histogramBounds.reserve(label, value);
  }

  /** Returns whether histograms already count this value by name. */
  isKnown(label: string, value: string): boolean {
    return this.#histogramBounds.has(label, value);
  }

  /** Returns the values that this thread contributes to, for `replaceObservations` of another thread's registry. */
  observations(): Observations {
    return [...this.#known]
      .filter(([, { spec }]) => spec.ofThreads === true)
      .map(([name, { read }]) => [name, [...read()]] as const);
  }

  /** @param observations undefined when the thread has ended */
  replaceObservations(thread: string, observations: Observations | undefined): void {
    if (observations === undefined) this.#observed.delete(thread);
    else this.#observed.set(thread, new Map(observations));
  }

  /** Removes the series with such a value. */
  forget(label: string, values: ReadonlySet<string>): void {
    for (const rows of this.#groups.values()) rows.forget(label, values);
  }

  /** Returns the values that a label currently has. */
  valuesOf(label: string): Set<string> {
    return new Set([...this.#groups.values()].flatMap((rows) => rows.valuesOf(label)));
  }

  #counter(rows: Rows, { name, help, rank }: { name: string; help: string; rank: number }): Counter {
    const full = this.#prefix + name;
    const counter = new Counter(rows.reserve(1), rank);
    const { at, bit } = counter;
    this.#readers.set(name, () =>
      rows.seen(bit).map(({ values, numbers }) => ({
        labels: labelsOf(rows.labels, values),
        value: numbers[at] ?? 0,
        count: 0,
      })),
    );
    this.#printers.push((format) => {
      const lines = rows.seen(counter.bit).map((row) => printCounter(full, rows.labels, row, counter.at));
      return printHead(full, "counter", help, format) + lines.join("");
    });
    return counter;
  }

  #printHistograms(rows: Rows, { name, help, histogram }: { name: string; help: string; histogram: Histogram }): void {
    const full = this.#prefix + name;
    const { at, bounds, bit } = histogram;
    this.#readers.set(name, () =>
      rows.seen(bit).map(({ values, numbers }) => ({
        labels: labelsOf(rows.labels, values),
        value: numbers[at + bounds.length] ?? 0,
        count: numbers[at + bounds.length + 1] ?? 0,
      })),
    );
    this.#printers.push((format) => {
      const lines = rows.seen(bit).map((row) => printHistogram(full, rows.labels, row, { at, bounds, format }));
      return printHead(full, "histogram", help, format) + lines.join("");
    });
  }

  #printObservations(name: string, known: Known, format: MetricFormat): string {
    const full = this.#prefix + name;
    const { type, labels, help } = known.spec;
    const lines = this.#observations(name, known).map((observation) => printObservation(full, labels, observation));
    return printHead(full, type, help, format) + lines.join("");
  }

  /** Returns the values of this thread and of the others. */
  #observations(name: string, { read }: Known): Observation[] {
    const others = Array.from(this.#observed.values(), (observed) => observed.get(name) ?? []).flat();
    return sums([...read(), ...others]);
  }
}

/** @param values as in a Row */
function labelsOf(labels: readonly string[], values: readonly string[]): Record<string, string> {
  const named = labels.map((label, at): [string, string] => [label, values[at] ?? ""]);
  for (let at = labels.length; at < values.length; at += 2) named.push([values[at] ?? "", values[at + 1] ?? ""]);
  return Object.fromEntries(named);
}

/** Adds up the values of threads that report under the same labels. */
function sums(observations: readonly Observation[]): Observation[] {
  const byKey = new Map<string, Observation>();
  for (const { values, value } of observations) {
    const key = JSON.stringify(values);
    byKey.set(key, { values, value: value + (byKey.get(key)?.value ?? 0) });
  }
  return [...byKey.values()];
}

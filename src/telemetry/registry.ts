/** Counters and histograms with labels, and their printing in the Prometheus text format 0.0.4. */

export interface Counter {
  /** @param labels values in the order of the label names */
  add(labels: readonly string[], amount: number): void;
}

export interface Histogram {
  observe(labels: readonly string[], value: number): void;
}

export interface Registry {
  counter(name: string, help: string, labels: readonly string[], type?: "counter" | "gauge"): Counter;
  histogram(name: string, help: string, labels: readonly string[], bounds: readonly number[]): Histogram;
  gauge(name: string, help: string, read: () => Iterable<{ labels: Record<string, string>; value: number }>): void;
  print(): string;
  /** Everything counted since the last call, for `add` of another thread's registry with the same families. */
  take(): Counted;
  add(counted: Counted): void;
}

/** Plain data: families by name, in each the series that moved. */
export type Counted = readonly (readonly [family: string, series: readonly CountedSeries[]])[];

interface CountedSeries {
  readonly key: string;
  readonly labels: string;
  readonly counts: readonly number[];
  readonly sum: number;
  readonly total: number;
}

interface Series {
  readonly labels: string;
  readonly counts: number[];
  sum: number;
  total: number;
}

/** Counters and histograms of one name. */
class Family {
  readonly all = new Map<string, Series>();
  readonly #names: readonly string[];
  readonly #size: number;

  constructor(names: readonly string[], size: number) {
    this.#names = names;
    this.#size = size;
  }

  find(values: readonly string[]): Series {
    const key = keyOf(values);
    let series = this.all.get(key);
    if (series === undefined) {
      const labels = this.#names.map((name, at) => `${name}="${escapeLabel(values[at] ?? "")}"`).join(",");
      this.all.set(key, (series = this.#empty(labels)));
    }
    return series;
  }

  take(): CountedSeries[] {
    const moved = [...this.all].map(([key, series]) => ({ key, ...series }));
    this.all.clear();
    return moved;
  }

  add(moved: readonly CountedSeries[]): void {
    for (const { key, labels, counts, sum, total } of moved) {
      let series = this.all.get(key);
      if (series === undefined) this.all.set(key, (series = this.#empty(labels)));
      for (const [at, count] of counts.entries()) series.counts[at] = (series.counts[at] ?? 0) + count;
      series.sum += sum;
      series.total += total;
    }
  }

  #empty(labels: string): Series {
    return { labels, counts: Array.from({ length: this.#size }, () => 0), sum: 0, total: 0 };
  }
}

/** Cannot occur in a label value that came over HTTP. */
const SEPARATOR = "\u0000";

export function createRegistry(prefix: string): Registry {
  const printers: (() => string)[] = [];
  const families = new Map<string, Family>();
  const head = (name: string, help: string, type: string): string =>
    `# HELP ${prefix}${name} ${help}\n# TYPE ${prefix}${name} ${type}\n`;
  return {
    counter(name, help, labels, type = "counter") {
      const family = new Family(labels, 0);
      // What does not count up is this process's own.
      if (type === "counter") families.set(name, family);
      printers.push(() => {
        const lines = [...family.all.values()].map((series) => printCounter(`${prefix}${name}`, series));
        return head(name, help, type) + lines.join("");
      });
      return {
        add(values, amount) {
          family.find(values).sum += amount;
        },
      };
    },
    histogram(name, help, labels, bounds) {
      const family = new Family(labels, bounds.length);
      families.set(name, family);
      printers.push(
        () =>
          head(name, help, "histogram") +
          [...family.all.values()].map((series) => printHistogram(`${prefix}${name}`, bounds, series)).join(""),
      );
      return {
        observe(values, value) {
          const series = family.find(values);
          const at = bounds.findIndex((bound) => value <= bound);
          if (at >= 0) series.counts[at] = (series.counts[at] ?? 0) + 1;
          series.sum += value;
          series.total++;
        },
      };
    },
    gauge(name, help, read) {
      printers.push(() => head(name, help, "gauge") + printGauge(`${prefix}${name}`, read()));
    },
    print: () => printers.map((print) => print()).join(""),
    take: () => [...families].map(([name, family]) => [name, family.take()] as const),
    add(counted) {
      for (const [name, moved] of counted) families.get(name)?.add(moved);
    },
  };
}

let latest: readonly string[] = [];
let latestKey = "";

/** A request is counted in several families with one array of labels: its key is built and hashed once. */
function keyOf(values: readonly string[]): string {
  if (values !== latest) {
    latest = values;
    latestKey = values.join(SEPARATOR);
  }
  return latestKey;
}

function printCounter(name: string, { labels, sum }: Series): string {
  return `${name}${labels === "" ? "" : `{${labels}}`} ${sum}\n`;
}

function printGauge(name: string, values: Iterable<{ labels: Record<string, string>; value: number }>): string {
  const lines = [...values].map(({ labels, value }) => {
    const text = Object.entries(labels)
      .map(([label, given]) => `${label}="${escapeLabel(given)}"`)
      .join(",");
    return `${name}${text === "" ? "" : `{${text}}`} ${value}\n`;
  });
  return lines.join("");
}

function printHistogram(name: string, bounds: readonly number[], { labels, counts, sum, total }: Series): string {
  let below = 0;
  const lines = bounds.map((bound, at) => {
    below += counts[at] ?? 0;
    return `${name}_bucket{${labels},le="${bound}"} ${below}\n`;
  });
  return `${lines.join("")}${name}_bucket{${labels},le="+Inf"} ${total}\n${name}_sum{${labels}} ${sum}\n${name}_count{${labels}} ${total}\n`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

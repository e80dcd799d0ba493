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
}

interface Series {
  readonly labels: string;
  readonly counts: number[];
  sum: number;
  total: number;
}

/** Cannot occur in a label value that came over HTTP. */
const SEPARATOR = "\u0000";

export function createRegistry(prefix: string): Registry {
  const printers: (() => string)[] = [];
  const seriesOf = (
    names: readonly string[],
    size: number,
  ): ((values: readonly string[]) => Series) & { all: Map<string, Series> } => {
    const all = new Map<string, Series>();
    const find = (values: readonly string[]): Series => {
      const key = keyOf(values);
      let series = all.get(key);
      if (series === undefined) {
        const labels = names.map((name, at) => `${name}="${escapeLabel(values[at] ?? "")}"`).join(",");
        all.set(key, (series = { labels, counts: Array.from({ length: size }, () => 0), sum: 0, total: 0 }));
      }
      return series;
    };
    return Object.assign(find, { all });
  };
  const head = (name: string, help: string, type: string): string =>
    `# HELP ${prefix}${name} ${help}\n# TYPE ${prefix}${name} ${type}\n`;
  return {
    counter(name, help, labels, type = "counter") {
      const find = seriesOf(labels, 0);
      printers.push(() => {
        const lines = [...find.all.values()].map((series) => `${prefix}${name}{${series.labels}} ${series.sum}\n`);
        return head(name, help, type) + lines.join("");
      });
      return {
        add(values, amount) {
          find(values).sum += amount;
        },
      };
    },
    histogram(name, help, labels, bounds) {
      const find = seriesOf(labels, bounds.length);
      printers.push(
        () =>
          head(name, help, "histogram") +
          [...find.all.values()].map((series) => printHistogram(`${prefix}${name}`, bounds, series)).join(""),
      );
      return {
        observe(values, value) {
          const series = find(values);
          const at = bounds.findIndex((bound) => value <= bound);
          if (at >= 0) series.counts[at] = (series.counts[at] ?? 0) + 1;
          series.sum += value;
          series.total++;
        },
      };
    },
    gauge(name, help, read) {
      printers.push(() => {
        const lines = [...read()].map(({ labels, value }) => {
          const text = Object.entries(labels)
            .map(([label, given]) => `${label}="${escapeLabel(given)}"`)
            .join(",");
          return `${prefix}${name}${text === "" ? "" : `{${text}}`} ${value}\n`;
        });
        return head(name, help, "gauge") + lines.join("");
      });
    },
    print: () => printers.map((print) => print()).join(""),
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

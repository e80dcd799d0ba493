/**
 * Prints metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0. They differ in the names of counters,
 * the form of bucket bounds, and the end marker.
 */
import { labelText, type Row } from "./series.ts";

export type MetricFormat = "prometheus" | "openmetrics";
type MetricType = "counter" | "gauge" | "histogram";

/** One value of a metric that is read on demand; `values` are those of the labels, in their order. */
export interface Observation {
  readonly values: readonly string[];
  readonly value: number;
}

/**
 * Prints the HELP and TYPE lines of a family.
 * @param name with its prefix; the name of a counter ends in _total
 */
export function printHead(name: string, type: MetricType, help: string, format: MetricFormat): string {
  // OpenMetrics names the family without the suffix of its single value.
  const family = format === "openmetrics" && type === "counter" ? name.replace(/_total$/, "") : name;
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
}

export function printEnd(format: MetricFormat): string {
  return format === "openmetrics" ? "# EOF\n" : "";
}

export function printObservation(name: string, labels: readonly string[], { values, value }: Observation): string {
  return line(name, labelText(labels, values), value);
}

/** @param at index of the number in the row */
export function printCounter(name: string, labels: readonly string[], row: Row, at: number): string {
  return line(name, row.text(labels), row.numbers[at] ?? 0);
}

interface HistogramPlace {
  readonly bounds: readonly number[];
  /** Index of its numbers: a count for each bound, then the sum, then the total count. */
  readonly at: number;
}

export function printHistogram(
  name: string,
  labels: readonly string[],
  row: Row,
  { bounds, at, format }: HistogramPlace & { readonly format: MetricFormat },
): string {
  const text = row.text(labels);
  const before = text === "" ? "" : `${text},`;
  const total = row.numbers[at + bounds.length + 1] ?? 0;
  let below = 0;
  const lines = bounds.map((bound, rank) => {
    below += row.numbers[at + rank] ?? 0;
    return line(`${name}_bucket`, `${before}le="${boundText(bound, format)}"`, below);
  });
  lines.push(
    line(`${name}_bucket`, `${before}le="+Inf"`, total),
    line(`${name}_sum`, text, row.numbers[at + bounds.length] ?? 0),
    line(`${name}_count`, text, total),
  );
  return lines.join("");
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels === "" ? "" : `{${labels}}`} ${value}\n`;
}

/** OpenMetrics prints every bound with a fraction (canonical numbers). */
function boundText(bound: number, format: MetricFormat): string {
  return format === "openmetrics" && Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

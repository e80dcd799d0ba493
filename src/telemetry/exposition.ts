/** Metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0, which differ in the names of counters and in their end. */
import { labelText, type Row } from "./series.ts";

export type MetricFormat = "prometheus" | "openmetrics";
type MetricType = "counter" | "gauge" | "histogram";

/** One metric of a family that is read when asked for. @param values of the labels, in their order */
export interface GaugeCallback {
  readonly values: readonly string[];
  readonly value: number;
}

/** The lines in front of a family's values. @param name with its prefix; that of a counter ends in _total */
export function printHead(name: string, type: MetricType, help: string, format: MetricFormat): string {
  // OpenMetrics names the family without the ending of its one value.
  const family = format === "openmetrics" && type === "counter" ? name.replace(/_total$/, "") : name;
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
}

export function printEnd(format: MetricFormat): string {
  return format === "openmetrics" ? "# EOF\n" : "";
}

export function printReading(name: string, labels: readonly string[], { values, value }: GaugeCallback): string {
  return line(name, labelText(labels, values), value);
}

/** @param at where the number is */
export function printCounter(name: string, labels: readonly string[], row: Row, at: number): string {
  return line(name, row.text(labels), row.numbers[at] ?? 0);
}

interface HistogramPlace {
  readonly bounds: readonly number[];
  /** Where its numbers begin: a count for each bound, then the sum, then the count of all. */
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

/** The canonical form of OpenMetrics has a fraction in every number. */
function boundText(bound: number, format: MetricFormat): string {
  return format === "openmetrics" && Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

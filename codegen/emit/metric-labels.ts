/**
 * Writes metric-labels.ts: the reserved label names, for the translator, which does not import the metrics.
 */
import { reservedLabels } from "../../src/telemetry/metric-table.ts";
import { header, literal } from "../print.ts";

export function emitMetricLabels(): string {
  return `${header("//", "src/telemetry/metric-table.ts")}
/** Built-in labels of the metrics that accept labels of users, and labels that Prometheus reserves. */
export const RESERVED_METRIC_LABELS: readonly string[] = ${literal(reservedLabels())};
`;
}

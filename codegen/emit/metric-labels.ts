/**
 * Writes metric-labels.ts: the label names that users cannot take, for the translator, which does not see the metrics
 * themselves.
 */
import { reservedLabels } from "../../src/telemetry/metric-table.ts";
import { header, literal } from "../print.ts";

export function emitMetricLabels(): string {
  return `${header("//", "src/telemetry/metric-table.ts")}
/** Labels of the metrics that a label of a user is added to, and those that Prometheus keeps for itself. */
export const TAKEN_METRIC_LABELS: readonly string[] = ${literal(reservedLabels())};
`;
}

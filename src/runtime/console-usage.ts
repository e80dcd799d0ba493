/** Adds up what LLM requests used and cost by the values of one label, for the console of the admin server. */
import type { UsageList, UsageRow } from "../console/data.ts";
import type { Reading } from "../telemetry/registry.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const MODEL = "gen_ai_request_model";
/** Labels that answer a question about costs; labels of `frontend.metrics` are added to them. */
const COST_LABELS = [MODEL, "gen_ai_response_model", "gen_ai_system", "gateway", "route"];
const OTHER_LABELS = new Set([
  "gen_ai_token_type",
  "gen_ai_operation_name",
  "bind",
  "listener",
  "route_rule",
  "status",
]);
const TOKEN_FIELDS: Readonly<
  Record<string, "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens" | undefined>
> = {
  input: "inputTokens",
  output: "outputTokens",
  input_cache_read: "cacheReadTokens",
  input_cache_write: "cacheWriteTokens",
};
const MAX_ROWS = 200;

/**
 * @param read returns the series of a metric
 * @param asked label to add up by; that of the requested model when unknown
 */
export function listUsage(read: (metric: string) => readonly Reading[], asked: string | undefined): UsageList {
  const calls = read("gen_ai_server_request_duration");
  const own = new Set(calls.flatMap(({ labels }) => Object.keys(labels)));
  for (const label of [...COST_LABELS, ...OTHER_LABELS]) own.delete(label);
  const labels = [...COST_LABELS, ...[...own].sort()];
  const label = asked !== undefined && labels.includes(asked) ? asked : MODEL;
  const rows = new Map<string, Mutable<UsageRow>>();
  const rowOf = (reading: Reading): Mutable<UsageRow> => {
    const value = reading.labels[label] ?? "";
    let row = rows.get(value);
    if (row === undefined) rows.set(value, (row = emptyRow(value)));
    return row;
  };
  for (const reading of calls) rowOf(reading).requests += reading.count;
  for (const reading of read("gen_ai_client_token_usage")) {
    const field = TOKEN_FIELDS[reading.labels["gen_ai_token_type"] ?? ""];
    if (field !== undefined) rowOf(reading)[field] += reading.value;
  }
  for (const reading of read("gen_ai_client_cost_usd_total")) {
    const row = rowOf(reading);
    row.costUsd = (row.costUsd ?? 0) + reading.value;
  }
  for (const reading of read("cost_catalog_lookups_total"))
    if (reading.labels["status"] !== "Exact") rowOf(reading).unpriced += reading.value;
  const sorted = [...rows.values()].sort(compareCost);
  return { label, labels, rows: sorted.slice(0, MAX_ROWS), total: sorted.length };
}

function emptyRow(value: string): Mutable<UsageRow> {
  return {
    value,
    requests: 0,
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: null,
    unpriced: 0,
  };
}

/** The dearest come first, then those with most tokens. */
function compareCost(a: UsageRow, b: UsageRow): number {
  const tokens = ({ inputTokens, outputTokens }: UsageRow): number => inputTokens + outputTokens;
  return (b.costUsd ?? 0) - (a.costUsd ?? 0) || tokens(b) - tokens(a) || a.value.localeCompare(b.value);
}

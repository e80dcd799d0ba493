/** The figures of a run by row and column, and the tables that are printed of them. */
import type { Churned } from "./churn.ts";
import type { Load } from "./load.ts";
import { figure, median, printTable } from "./report.ts";
import type { SessionFigures } from "./mcp-sessions.ts";
import type { Row, RowName } from "./rows.ts";
import type { Scaled } from "./scale.ts";
import type { StreamMemory } from "./streams.ts";

export interface Results {
  /** By row and column. */
  readonly loads: Map<string, Load[]>;
  /** By column. */
  readonly startMs: Map<string, number[]>;
  readonly idleMiB: Map<string, number[]>;
  readonly peakMiB: Map<string, number>;
  /** Rows and columns without figures, with the reason. */
  readonly missing: Map<string, string>;
  readonly streams: StreamMemory[];
  /** One entry when the row was measured, else none. */
  readonly sessions: SessionFigures[];
  readonly churned: Churned[];
  readonly scaled: Scaled[];
}

export function emptyResults(): Results {
  return {
    loads: new Map(),
    startMs: new Map(),
    idleMiB: new Map(),
    peakMiB: new Map(),
    missing: new Map(),
    streams: [],
    sessions: [],
    churned: [],
    scaled: [],
  };
}

export function keyOf(row: RowName, column: string): string {
  return `${row} ${column}`;
}

/**
 * Returns CPU-microseconds, or the milliseconds that the gateway adds; "failed" when a request failed, undefined when
 * the row was not run.
 */
export function valueOf({ loads }: Results, row: Row, column: string): number | "failed" | undefined {
  const own = loads.get(keyOf(row.name, column));
  if (own === undefined) return undefined;
  // Errors may be fast, so a row with errors has no figure.
  if (own.some(({ ok, bad, ioerr }) => ok === 0 || bad + ioerr > 0)) return "failed";
  if (row.measure === "processor") return median(own.map(({ cpu_us_per_req }) => cpu_us_per_req ?? 0));
  const direct = loads.get(keyOf(row.name, "direct")) ?? [];
  const times = (all: readonly Load[]): number =>
    median(all.map(({ ttfb_us, svc_us }) => (row.measure === "first byte" ? ttfb_us.p50 : svc_us.p50))) ?? 0;
  return (times(own) - times(direct)) / 1_000;
}

export function loadTables(results: Results, rows: readonly Row[], columns: readonly string[], rounds: number): string {
  const line = (row: Row): string[] => [row.title, ...columns.map((column) => cell(valueOf(results, row, column)))];
  const loaded = rows.filter(({ measure }) => measure === "processor").map(line);
  const latencies = rows.filter(({ measure }) => measure !== "processor").map(line);
  const { startMs, idleMiB, peakMiB } = results;
  const of = (figures: ReadonlyMap<string, readonly number[]>, name: string): string =>
    figure(median(figures.get(name) ?? []));
  const own = columns.map((column) => (column === "gwproxy" ? "get-threads" : ""));
  const other = [
    ["start to first answer, ms", ...columns.map((column) => of(startMs, column))],
    ["the same with a thread for each core", ...own.map((name) => of(startMs, name))],
    ["memory idle, MiB", ...columns.map((column) => of(idleMiB, column))],
    ["the same with a thread for each core", ...own.map((name) => of(idleMiB, name))],
    ["memory peak, MiB", ...columns.map((column) => figure(peakMiB.get(column)))],
    ["the same with a thread for each core", ...own.map((name) => figure(peakMiB.get(name)))],
  ];
  return [
    printTable([`CPU-µs per request, median of ${rounds}`, ...columns], loaded),
    printTable(["added, ms", ...columns], latencies),
    printTable(["process", ...columns], other),
  ].join("\n");
}

function cell(value: number | "failed" | undefined): string {
  if (value === undefined) return "–";
  return value === "failed" ? value : figure(value);
}

/** Computes medians and percentiles, and prints figures as tables. */

/** Returns the lower median; undefined for an empty list. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

/** Returns the smallest value that is not exceeded by at least this share of them; undefined for an empty list. */
export function percentile(values: readonly number[], share: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)];
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    widths
      .map((width, column) => (column === 0 ? (row[column] ?? "").padEnd(width) : (row[column] ?? "").padStart(width)))
      .join("  ")
      .trimEnd();
  return `${all.map(line).join("\n")}\n`;
}

/** Prints three significant digits; on a shared machine further ones are noise. */
export function figure(value: number | undefined): string {
  if (value === undefined) return "–";
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(1);
}

/** Figures as a table for people and as JSON for comparison with earlier runs. */

/** The middle one; of an even number the lower of the two in the middle. Undefined without any. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

/** The smallest value that at least this share of them does not exceed. Undefined without any. */
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

/** Three significant digits are more than a shared machine can tell. */
export function figure(value: number | undefined): string {
  if (value === undefined) return "–";
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(1);
}

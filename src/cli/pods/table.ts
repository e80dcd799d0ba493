/** Prints rows in columns, as kubectl does. Commands that list something use it. */

/** @param rows of equal length; the first one is the head */
export function printTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => plain(row[column]).length)));
  const lines = rows.map((row) => row.map((cell, at) => plain(cell).padEnd(widths[at] ?? 0)).join("   "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/** Names come from a cluster and may hold control characters, which a terminal would obey. */
export function plain(text: string | undefined): string {
  // oxlint-disable-next-line no-control-regex -- they are what is replaced
  return (text ?? "").replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "�");
}

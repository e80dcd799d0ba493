/** Prints numbers, sizes and times of the console for people, in the same short forms everywhere. */

const COUNTS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function formatCount(value: number): string {
  return COUNTS.format(value);
}

/** Returns a rate with one decimal below ten, such as "3.4" or "120". */
export function formatRate(perSecond: number): string {
  return perSecond < 10 ? SHORT.format(perSecond) : COUNTS.format(perSecond);
}

export function formatBytes(bytes: number): string {
  const mebibytes = bytes / (1 << 20);
  return mebibytes >= 1024 ? `${SHORT.format(mebibytes / 1024)} GiB` : `${SHORT.format(mebibytes)} MiB`;
}

/** Returns a duration such as "850 µs", "12.4 ms" or "3.1 s". */
export function formatMicroseconds(microseconds: number): string {
  if (microseconds < 1000) return `${COUNTS.format(microseconds)} µs`;
  if (microseconds < 1_000_000) return `${SHORT.format(microseconds / 1000)} ms`;
  return `${SHORT.format(microseconds / 1_000_000)} s`;
}

/** Returns dollars with four digits below a cent, since single requests cost that little. */
export function formatUsd(dollars: number): string {
  const digits = dollars !== 0 && Math.abs(dollars) < 0.01 ? 6 : 2;
  return `$${dollars.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** Returns the two largest units of an age, such as "3 d 4 h" or "12 s". */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units: readonly (readonly [string, number])[] = [
    ["d", Math.floor(seconds / 86_400)],
    ["h", Math.floor(seconds / 3600) % 24],
    ["min", Math.floor(seconds / 60) % 60],
    ["s", seconds % 60],
  ];
  const first = units.findIndex(([, count]) => count > 0);
  if (first < 0) return "0 s";
  const shown = units.slice(first, first + 2).filter(([, count]) => count > 0);
  return shown.map(([unit, count]) => `${count} ${unit}`).join(" ");
}

export function formatPercent(share: number): string {
  return `${SHORT.format(share * 100)} %`;
}

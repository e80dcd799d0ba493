/** Parses durations of the Gateway API (GEP-2257): one to four whole numbers with the units h, m, s, ms, added up. */
const WHOLE = /^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$/;
const GROUP = /([0-9]+)(ms|h|m|s)/g;
const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** @returns milliseconds; undefined when the text is not a duration */
export function parseDuration(text: string): number | undefined {
  if (text.length > 32 || !WHOLE.test(text)) return undefined;
  let total = 0;
  for (const [, digits, unit] of text.matchAll(GROUP)) total += Number(digits) * (UNIT_MS[unit as string] as number);
  return total;
}

/** Node counts the delay of a timer in 31 bits of milliseconds: 24 days. */
const LONGEST_MS = 2_147_483_647;

/**
 * Converts a duration for a timer and clamps it to the longest one. @returns 0 for undefined and for a text that
 * admission would have rejected
 */
export function timerMs(text: string | undefined): number {
  return text === undefined ? 0 : Math.min(parseDuration(text) ?? 0, LONGEST_MS);
}

/** When an upstream that answers 429 says it can be asked again (proxying.md 8): the first header that can be read. */
import type { HeaderList } from "../../lib/header-list.ts";

const TOO_MANY_REQUESTS = 429;
/** Below it a number of seconds is a span, above it a time since 1970. */
const LONGEST_SPAN_SECONDS = 30 * 86_400;
const SPAN = /^(?:\d{1,9}(?:\.\d{1,9})?(?:h|ms|m|s))+$/;
const SPAN_PART = /([\d.]+)(h|ms|m|s)/g;
const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
/** The budgets of LLM vendors: the one that is free first lets requests through. */
const BUDGETS = ["requests", "tokens", "requests-day", "tokens-minute"].map((name) => `x-ratelimit-reset-${name}`);

/** @param nowMs since 1970 @returns milliseconds from now; undefined when the answer gives none */
export function rateLimitHintMs(status: number, headers: HeaderList, nowMs: number): number | undefined {
  if (status !== TOO_MANY_REQUESTS) return undefined;
  return (
    retryAfterMs(headers.get("retry-after"), nowMs) ??
    positive(numberOf(headers.get("retry-after-ms"))) ??
    resetMs(numberOf(headers.get("x-ratelimit-reset")), nowMs) ??
    smallest(BUDGETS.map((name) => spanMs(headers.get(name))))
  );
}

/** Seconds or a date (RFC 9110 10.2.3). @param nowMs since 1970 @returns milliseconds from now */
export function retryAfterMs(text: string | undefined, nowMs: number): number | undefined {
  const seconds = numberOf(text);
  if (seconds !== undefined) return positive(seconds * 1000);
  // Every form of a date in HTTP begins with the name of a day.
  if (text === undefined || !/^[A-Za-z]/.test(text)) return undefined;
  return positive(Date.parse(text) - nowMs);
}

function resetMs(value: number | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  return positive(value < LONGEST_SPAN_SECONDS ? value * 1000 : value * 1000 - nowMs);
}

/** A duration such as "6m0s" or "1.5s", or seconds. */
function spanMs(text: string | undefined): number | undefined {
  const seconds = numberOf(text);
  if (seconds !== undefined) return positive(seconds * 1000);
  if (text === undefined || text.length > 64 || !SPAN.test(text)) return undefined;
  let total = 0;
  for (const [, number, unit] of text.matchAll(SPAN_PART))
    total += Number(number) * (UNIT_MS[unit as string] as number);
  return positive(total);
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,15}(?:\.\d{1,9})?\s*$/.test(text) ? Number(text) : undefined;
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

function smallest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

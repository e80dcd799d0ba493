/**
 * Reads from a 429 response when the upstream can be called again: Retry-After (RFC 9110 §10.2.3) or the rate limit
 * headers of vendors; the first one that can be parsed wins. Attempts pass the result to the ejection of the endpoint.
 */
import type { HeaderList } from "../../lib/header-list.ts";

const TOO_MANY_REQUESTS = 429;
/** A smaller `x-ratelimit-reset` is a span in seconds, a larger one a Unix time. */
const LONGEST_SPAN_SECONDS = 30 * 86_400;
const SPAN = /^(?:\d{1,9}(?:\.\d{1,9})?(?:h|ms|m|s))+$/;
const SPAN_PART = /([\d.]+)(h|ms|m|s)/g;
const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
/** Budgets of LLM vendors. The budget that is free first lets requests through, so the smallest reset counts. */
const BUDGETS = ["requests", "tokens", "requests-day", "tokens-minute"].map((name) => `x-ratelimit-reset-${name}`);

/** @param nowMs Unix time in milliseconds @returns milliseconds from now; undefined when the response gives no hint */
export function rateLimitHintMs(status: number, headers: HeaderList, nowMs: number): number | undefined {
  if (status !== TOO_MANY_REQUESTS) return undefined;
  return (
    retryAfterMs(headers.get("retry-after"), nowMs) ??
    positive(numberOf(headers.get("retry-after-ms"))) ??
    resetMs(numberOf(headers.get("x-ratelimit-reset")), nowMs) ??
    smallest(BUDGETS.map((name) => spanMs(headers.get(name))))
  );
}

/** Parses Retry-After: seconds or a date (RFC 9110 §10.2.3). @param nowMs Unix time @returns milliseconds from now */
export function retryAfterMs(text: string | undefined, nowMs: number): number | undefined {
  const seconds = numberOf(text);
  if (seconds !== undefined) return positive(seconds * 1000);
  // Every HTTP date begins with the name of a day (RFC 9110 §5.6.7); Date.parse alone would accept more.
  if (text === undefined || !/^[A-Za-z]/.test(text)) return undefined;
  return positive(Date.parse(text) - nowMs);
}

function resetMs(value: number | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  return positive(value < LONGEST_SPAN_SECONDS ? value * 1000 : value * 1000 - nowMs);
}

/** Parses a duration such as "6m0s" or "1.5s", or a number of seconds. */
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

/**
 * Numbers of payment cards (ISO/IEC 7812): a known first digit, 13 to 19 digits in one piece or in groups, and a valid
 * check digit.
 */
import type { Span } from "../../../../cel/functions/match-finder.ts";
import { digitsOf, HYPHENS, isWhole, lengthOf, passesLuhn, SPACES, type Entity } from "./entity.ts";

const MIN_DIGITS = 13;
const MAX_DIGITS = 19;
/** Visa, Mastercard, Discover and UnionPay, American Express and Diners Club, UATP. */
const PREFIX = /^(?:4|5[0-5]|6|3|1)/;
/** The second range of Mastercard, 2221 to 2720, whose numbers all have 16 digits. */
const SECOND_MASTERCARD = /^2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}$/;
/** The first group has four digits: 4-4-4-4, 4-6-5, 4-6-4 and 4-4-4-4-3 are in use. */
const FIRST_GROUP = 4;
const MIN_GROUP = 3;
const MAX_GROUP = 6;
const MAX_GROUPS = 5;
const GAPS = SPACES + HYPHENS;

export const creditCard: Entity = {
  mask: "<CREDIT_CARD>",
  find(text, digits) {
    const found: Span[] = [];
    for (let first = 0; first < digits.length; first++) {
      const last = lastGroup(text, digits, first);
      if (last === undefined) continue;
      found.push({ start: (digits[first] as Span).start, end: (digits[last] as Span).end });
      first = last;
    }
    return found;
  },
};

/** Returns the index of the run that ends the longest card number which begins with run `first`. */
function lastGroup(text: string, runs: readonly Span[], first: number): number | undefined {
  const { start, end } = runs[first] as Span;
  const length = end - start;
  if (length !== FIRST_GROUP && length < MIN_DIGITS) return undefined;
  let last: number | undefined;
  for (let at = first, total = 0; at < runs.length && at < first + MAX_GROUPS; at++) {
    const run = runs[at] as Span;
    total += lengthOf(run);
    if (at > first && !continues(text, runs[at - 1] as Span, run)) break;
    if (total > MAX_DIGITS) break;
    if (total >= MIN_DIGITS && isCard(text, { start, end: run.end })) last = at;
  }
  return last;
}

function continues(text: string, before: Span, run: Span): boolean {
  const length = lengthOf(run);
  if (length < MIN_GROUP || length > MAX_GROUP || lengthOf(before) > MAX_GROUP) return false;
  return run.start === before.end + 1 && GAPS.includes(text.charAt(before.end));
}

function isCard(text: string, span: Span): boolean {
  if (!isWhole(text, span)) return false;
  const digits = digitsOf(text, span);
  if (!PREFIX.test(digits) && !SECOND_MASTERCARD.test(digits)) return false;
  // Thirteen digits after a 1 are a time in milliseconds; no card has that form.
  if (digits.length === MIN_DIGITS && digits.startsWith("1")) return false;
  return passesLuhn(digits);
}

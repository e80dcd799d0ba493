/**
 * The interface of a built-in entity of regex guards, and what the entities share: runs of digits, borders of words and
 * the Luhn check (ISO/IEC 7812-1 Annex B). The entities are scanners written by hand: they start from the digits or the
 * `@` of a text and take about a microsecond per kilobyte, where a regular expression per entity takes ten times as
 * long.
 */
import type { Span } from "../../../../cel/functions/match-finder.ts";

export interface Entity {
  /** Replaces what was found. */
  readonly mask: string;
  /** Finds the entity; the spans are in order and do not overlap. @param digits the runs of digits in the text */
  find(text: string, digits: readonly Span[]): readonly Span[];
}

/** A space, and those that do not break a line, which models and word processors write within numbers. */
export const SPACES = " \u00a0\u202f";
/** A hyphen-minus, the hyphens of Unicode, a figure dash and an en dash. */
export const HYPHENS = "-\u2010\u2011\u2012\u2013";

const ZERO = 0x30;
const NINE = 0x39;
const UNDERSCORE = 0x5f;
const ASCII = 0x80;
const LETTER_OR_DIGIT = /[\p{L}\p{N}\p{M}]/u;

/** Returns the maximal runs of ASCII digits. */
export function digitRuns(text: string): Span[] {
  const runs: Span[] = [];
  const { length } = text;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > NINE || code < ZERO) continue;
    const start = at++;
    while (at < length && isDigit(text.charCodeAt(at))) at++;
    runs.push({ start, end: at });
  }
  return runs;
}

/** @param code a UTF-16 unit; NaN beyond the ends of a text is no digit */
export function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Tells whether the UTF-16 unit at a position belongs to a word: a letter, a digit or an underscore. */
export function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < ASCII) return isDigit(code) || isAsciiLetter(code) || code === UNDERSCORE;
  return code >= ASCII && LETTER_OR_DIGIT.test(text.charAt(at));
}

export function isAsciiLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Tells whether neither end of the span touches another character of a word. */
export function isWhole(text: string, { start, end }: Span): boolean {
  return !isWordAt(text, start - 1) && !isWordAt(text, end);
}

export function lengthOf({ start, end }: Span): number {
  return end - start;
}

/** Checks the last digit of a number against the others. @param digits only ASCII digits */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let at = digits.length - 1, doubled = false; at >= 0; at--, doubled = !doubled) {
    const digit = digits.charCodeAt(at) - ZERO;
    sum += doubled ? (digit > 4 ? 2 * digit - 9 : 2 * digit) : digit;
  }
  return sum % 10 === 0;
}

/** Grouping of a number: the lengths of its runs of digits, and the characters that may separate them. */
export interface Grouping {
  readonly lengths: readonly number[];
  readonly separators: string;
}

/**
 * Returns the span of the grouping that begins at a run, with the same separator between all groups; undefined when
 * the text has another form there.
 */
function groupedAt(
  text: string,
  runs: readonly Span[],
  first: number,
  { lengths, separators }: Grouping,
): Span | undefined {
  const start = runs[first]?.start ?? 0;
  const separator = text.charAt(runs[first]?.end ?? 0);
  if (lengths.length > 1 && !separators.includes(separator)) return undefined;
  for (const [offset, length] of lengths.entries()) {
    const run = runs[first + offset];
    if (run === undefined || lengthOf(run) !== length) return undefined;
    if (offset === lengths.length - 1) {
      const span = { start, end: run.end };
      return isWhole(text, span) ? span : undefined;
    }
    if (text.charAt(run.end) !== separator || runs[first + offset + 1]?.start !== run.end + 1) return undefined;
  }
  return undefined;
}

/** Finds every number that has one of the groupings and passes the check; the first grouping that fits is taken. */
export function findGrouped(
  text: string,
  runs: readonly Span[],
  groupings: readonly Grouping[],
  accepts: (digits: string) => boolean,
): Span[] {
  const found: Span[] = [];
  for (let first = 0; first < runs.length; first++) {
    for (const grouping of groupings) {
      if (lengthOf(runs[first] as Span) !== grouping.lengths[0]) continue;
      const span = groupedAt(text, runs, first, grouping);
      if (span === undefined || !accepts(digitsOf(text, span))) continue;
      found.push(span);
      first += grouping.lengths.length - 1;
      break;
    }
  }
  return found;
}

export function digitsOf(text: string, { start, end }: Span): string {
  return text.slice(start, end).replaceAll(/\D/g, "");
}

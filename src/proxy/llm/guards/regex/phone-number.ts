/**
 * Phone numbers that are valid in one of seven countries (numbering-plans.ts), in their international form or as they
 * are written inside the country. A number that is written with its trunk digits inside the country, as in Germany, is
 * not recognised without them: most digits would otherwise be a number.
 */
import type { Span } from "../../../../cel/functions/match-finder.ts";
import { isDigit, isWordAt, lengthOf, type Entity } from "./entity.ts";
import { NUMBERING_PLANS, type NumberingPlan } from "./numbering-plans.ts";

const MIN_DIGITS = 7;
/** The longest form: an international prefix, a country code and a number (E.164 allows 15 digits). */
const MAX_DIGITS = 18;
const MAX_GROUPS = 7;
/** A gap between two groups: a space, a hyphen or dash, a dot or a slash, and brackets with a trunk digit or an area. */
const GAP =
  /^(?:[ \u00a0\u202f]?[-./\u2010-\u2013 \u00a0\u202f]?[ \u00a0\u202f]?\(?|\)[ \u00a0\u202f]?[-./\u2010-\u2013]?[ \u00a0\u202f]?)$/;
const MAX_GAP = 4;

export const phoneNumber: Entity = {
  mask: "<PHONE_NUMBER>",
  find(text, digits) {
    const found: Span[] = [];
    const groups = new Groups(text, digits);
    for (let first = 0; first < digits.length; first++) {
      const last = lastGroup(groups, first);
      if (last === undefined) continue;
      found.push({ start: groups.startOf(first), end: (digits[last] as Span).end });
      first = last;
    }
    return found;
  },
};

/** The runs of digits of a text, and which of them may be groups of one number. */
class Groups {
  readonly text: string;
  readonly runs: readonly Span[];
  /** 1 for a run that is separated from the run before it as groups of a number are. */
  readonly #continues: Uint8Array;

  constructor(text: string, runs: readonly Span[]) {
    this.text = text;
    this.runs = runs;
    this.#continues = new Uint8Array(runs.length);
    for (let at = 1; at < runs.length; at++) {
      const { end } = runs[at - 1] as Span;
      const { start } = runs[at] as Span;
      if (start - end <= MAX_GAP && GAP.test(text.slice(end, start))) this.#continues[at] = 1;
    }
  }

  continues(at: number): boolean {
    return this.#continues[at] === 1;
  }

  /** Includes a plus sign and an opening bracket before the run. */
  startOf(first: number): number {
    let { start } = this.runs[first] as Span;
    if (this.text.charAt(start - 1) === "(") start--;
    if (this.text.charAt(start - 1) === "+") start--;
    return start;
  }

  /** A fraction or the rest of a word is no number. */
  mayBeginAt(first: number): boolean {
    const { start } = this.runs[first] as Span;
    if (isWordAt(this.text, start - 1)) return false;
    return !(".,".includes(this.text.charAt(start - 1)) && isDigit(this.text.charCodeAt(start - 2)));
  }

  digits(first: number, last: number): string {
    let digits = "";
    for (let at = first; at <= last; at++) digits += this.text.slice(this.runs[at]?.start, this.runs[at]?.end);
    return digits;
  }

  lengths(first: number, last: number): number[] {
    return this.runs.slice(first, last + 1).map(lengthOf);
  }
}

/** Returns the index of the run that ends the longest number which begins with run `first`. */
function lastGroup(groups: Groups, first: number): number | undefined {
  if (!groups.mayBeginAt(first)) return undefined;
  const { text, runs } = groups;
  const { start } = runs[first] as Span;
  const hasPlus = text.charAt(start - 1) === "+" || text.charAt(groups.startOf(first)) === "+";
  const hasZero = text.charAt(start) === "0";
  let last: number | undefined;
  for (let at = first, length = 0; at < runs.length && at < first + MAX_GROUPS; at++) {
    const run = runs[at] as Span;
    length += lengthOf(run);
    if (length > MAX_DIGITS || (at > first && !groups.continues(at))) break;
    // Without a plus sign or a zero in front only North America, India and Brazil are left; most digits end here.
    if (length < MIN_DIGITS || (!hasPlus && !hasZero && length !== 10 && length !== 11)) continue;
    if (isWordAt(text, run.end)) continue;
    const digits = groups.digits(first, at);
    if (hasPlus ? isInternational(digits) : isLocal(digits, groups.lengths(first, at))) last = at;
  }
  return last;
}

/** @param digits as they are dialled within one of the countries */
function isLocal(digits: string, lengths: readonly number[]): boolean {
  const prefix = digits.startsWith("00") ? 2 : digits.startsWith("011") ? 3 : 0;
  if (prefix > 0 && isInternational(digits.slice(prefix))) return true;
  return NUMBERING_PLANS.some((plan) => isNational(plan, digits, lengths));
}

/** @param digits with the country code */
function isInternational(digits: string): boolean {
  return NUMBERING_PLANS.some(({ countryCode, isValid }) => {
    if (!digits.startsWith(countryCode)) return false;
    const rest = digits.slice(countryCode.length);
    // "+44 (0)20 …" names the trunk digit as well.
    return isValid(rest) || (rest.startsWith("0") && isValid(rest.slice(1)));
  });
}

function isNational(plan: NumberingPlan, digits: string, groups: readonly number[]): boolean {
  const trunk = plan.trunk.exec(digits)?.[0] ?? "";
  if (trunk !== "" && plan.isValid(digits.slice(trunk.length))) return isGrouped(plan, digits, trunk, groups);
  return !plan.isTrunkWritten && plan.isValid(digits) && isGrouped(plan, digits, "", groups);
}

/** Tells whether the groups may be those of a number: dates and versions have the digits of one as well. */
function isGrouped({ borders }: NumberingPlan, digits: string, trunk: string, groups: readonly number[]): boolean {
  if (borders === undefined) return groups.every((length) => length >= 2);
  let at = 0;
  return groups.every((length) => {
    at += length;
    const border = at - trunk.length;
    return border === 0 || at === digits.length || borders.has(border);
  });
}

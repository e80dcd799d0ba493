/** The string functions of the CEL strings extension. Positions and sizes count code points, not UTF-16 units. */
import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD, OUT_OF_RANGE } from "../errors.ts";

/** Substrings that a function creates per step. */
const PIECES_PER_STEP = 4;

/** @returns undefined when every code point is one UTF-16 unit, so that plain indexes are correct */
function codePoints(run: Run, text: string): string[] | Failure | undefined {
  if (codePointLength(text) === text.length) return undefined;
  return run.spend(text.length / PIECES_PER_STEP) ? COST_LIMIT : [...text];
}

export function codePointLength(text: string): number {
  let length = text.length;
  for (let at = 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xdc00 && unit < 0xe000 && isHigh(text.charCodeAt(at - 1))) length--;
  }
  return length;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isPosition(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value);
}

/** Wraps a function of strings: it charges for the text and rejects other types. */
function onText(apply: (run: Run, text: string, ...args: unknown[]) => unknown): CelFunction {
  return (run, text, ...args) => {
    if (typeof text !== "string") return NO_OVERLOAD;
    return run.spendLength(text.length * 2) ? COST_LIMIT : apply(run, text, ...args);
  };
}

function slice(points: string[] | string, start: number, end?: number): string {
  return typeof points === "string" ? points.slice(start, end) : points.slice(start, end).join("");
}

const charAt = onText((run, text, at) => {
  if (!isPosition(at)) return NO_OVERLOAD;
  const points = codePoints(run, text) ?? text;
  if (points instanceof Failure) return points;
  return at < 0 || at > points.length ? OUT_OF_RANGE : (points[at] ?? "");
});

const substring = onText((run, text, start, end) => {
  if (!isPosition(start) || (end !== undefined && !isPosition(end))) return NO_OVERLOAD;
  const points = codePoints(run, text) ?? text;
  if (points instanceof Failure) return points;
  const last = end ?? points.length;
  return start < 0 || last > points.length || start > last ? OUT_OF_RANGE : slice(points, start, last);
});

function search(backwards: boolean): CelFunction {
  return onText((run, text, part, from) => {
    if (typeof part !== "string" || (from !== undefined && !isPosition(from))) return NO_OVERLOAD;
    const points = codePoints(run, text);
    if (points instanceof Failure) return points;
    if (from !== undefined && (from < 0 || from > (points ?? text).length)) return OUT_OF_RANGE;
    const unit = from === undefined || points === undefined ? from : points.slice(0, from).join("").length;
    const found = backwards ? text.lastIndexOf(part, unit) : text.indexOf(part, unit);
    return found < 0 || points === undefined ? found : codePointLength(text.slice(0, found));
  });
}

export const indexOf: CelFunction = search(false);

export const lastIndexOf: CelFunction = search(true);

/**
 * Replaces occurrences. It computes the length of the result first, so that a short text cannot grow into a huge one.
 */
function replace(run: Run, text: unknown, ...args: unknown[]): unknown {
  const [from, to, limit = -1] = args;
  if (typeof text !== "string" || typeof from !== "string" || typeof to !== "string" || !isPosition(limit)) {
    return NO_OVERLOAD;
  }
  const most = limit < 0 ? Infinity : limit;
  const count = from === "" ? Math.min(most, text.length + 1) : occurrences(run, text, from, most);
  if (run.spend(count / PIECES_PER_STEP) || run.spendLength(text.length + count * to.length)) return COST_LIMIT;
  let done = 0;
  // Use a function: "$" in a replacement string would be interpreted.
  return text.replaceAll(from, (found) => (done++ < most ? to : found));
}

/** Counts the occurrences of `part`, up to `most`; a spent budget ends the count. */
function occurrences(run: Run, text: string, part: string, most: number): number {
  if (run.spendLength(text.length)) return 0;
  let count = 0;
  for (let at = text.indexOf(part); at >= 0 && count < most; at = text.indexOf(part, at + part.length)) {
    if (++count % PIECES_PER_STEP === 0 && run.spend(1)) return count;
  }
  return count;
}

function split(run: Run, text: unknown, separator: unknown, limit: unknown = -1): unknown {
  if (typeof text !== "string" || typeof separator !== "string" || !isPosition(limit)) return NO_OVERLOAD;
  if (limit === 0) return [];
  const pieces = separator === "" ? text.length : occurrences(run, text, separator, Infinity);
  if (run.spend(1 + pieces / PIECES_PER_STEP)) return COST_LIMIT;
  const parts = separator === "" ? [...text] : text.split(separator);
  if (limit < 0 || parts.length <= limit) return parts;
  return [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)];
}

export function join(run: Run, list: unknown, separator: unknown = ""): unknown {
  if (!Array.isArray(list) || typeof separator !== "string") return NO_OVERLOAD;
  let length = 0;
  for (const item of list) {
    if (typeof item !== "string") return NO_OVERLOAD;
    length += item.length + separator.length;
  }
  return run.spendLength(length + list.length * 8) ? COST_LIMIT : list.join(separator);
}

function reverse(run: Run, value: unknown): unknown {
  if (Array.isArray(value)) return run.spend(value.length) ? COST_LIMIT : value.toReversed();
  if (typeof value !== "string") return NO_OVERLOAD;
  return run.spend(1 + value.length / PIECES_PER_STEP) ? COST_LIMIT : [...value].toReversed().join("");
}

/**
 * Trims by walking in from both ends; a regular expression anchored at the end would try every start (quadratic time).
 */
const trim = onText((_run, text) => {
  let start = 0;
  let end = text.length;
  while (start < end && isWhiteSpace(text.charCodeAt(start))) start++;
  while (end > start && isWhiteSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
});

/** The characters with the Unicode property White_Space beyond ASCII; JavaScript's trim() has another list. */
const WIDE_SPACES: ReadonlySet<number> = new Set([0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000]);

function isWhiteSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return (unit >= 0x2000 && unit <= 0x200a) || WIDE_SPACES.has(unit);
}

const QUOTED: ReadonlyMap<string, string> = new Map([
  ["\u0007", "\\a"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\v", "\\v"],
  ["\\", "\\\\"],
  ['"', '\\"'],
]);

const quote = onText((run, text) =>
  run.spend(text.length / PIECES_PER_STEP)
    ? COST_LIMIT
    : `"${[...text.toWellFormed()].map((char) => QUOTED.get(char) ?? char).join("")}"`,
);

const lowerAscii = onText((_run, text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase()));
const upperAscii = onText((_run, text) => text.replace(/[a-z]+/g, (part) => part.toUpperCase()));

export const STRING_FUNCTIONS: readonly Declaration[] = [
  [".charAt(string, int): string", charAt],
  [".substring(string, int): string", substring],
  [".substring(string, int, int): string", substring],
  [".indexOf(string, string): int", indexOf],
  [".indexOf(string, string, int): int", indexOf],
  [".lastIndexOf(string, string): int", lastIndexOf],
  [".lastIndexOf(string, string, int): int", lastIndexOf],
  [".lowerAscii(string): string", lowerAscii],
  [".upperAscii(string): string", upperAscii],
  [".trim(string): string", trim],
  [".reverse(string): string; .reverse(list<A>): list<A>", reverse],
  [".replace(string, string, string): string", replace],
  [".replace(string, string, string, int): string", replace],
  [".split(string, string): list<string>", split],
  [".split(string, string, int): list<string>", split],
  [".join(list<string>): string", join],
  [".join(list<string>, string): string", join],
  ["strings.quote(string): string", quote],
];

/** Text functions of the strings extension. Positions and sizes count code points, not UTF-16 units. */
import { type Run, MAX_RESULT_LENGTH } from "../budget.ts";
import type { CelFunction } from "../environment.ts";
import { COST_LIMIT, NO_OVERLOAD, OUT_OF_RANGE } from "../errors.ts";
import type { Declaration } from "./table.ts";

/** @returns undefined when every code point is one unit, so that plain indexes are right */
function codePoints(text: string): string[] | undefined {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit < 0xdc00) return [...text];
  }
  return undefined;
}

export function codePointLength(text: string): number {
  return codePoints(text)?.length ?? text.length;
}

function isPosition(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value);
}

/** Wraps a text function: charges for the text and refuses other types. */
function onText(apply: (text: string, ...args: unknown[]) => unknown): CelFunction {
  return (run, text, ...args) => {
    if (typeof text !== "string") return NO_OVERLOAD;
    return run.spendLength(text.length * 4) ? COST_LIMIT : apply(text, ...args);
  };
}

function slice(points: string[] | string, start: number, end?: number): string {
  return typeof points === "string" ? points.slice(start, end) : points.slice(start, end).join("");
}

const charAt = onText((text, at) => {
  if (!isPosition(at)) return NO_OVERLOAD;
  const points = codePoints(text) ?? text;
  return at < 0 || at > points.length ? OUT_OF_RANGE : (points[at] ?? "");
});

const substring = onText((text, start, end) => {
  if (!isPosition(start) || (end !== undefined && !isPosition(end))) return NO_OVERLOAD;
  const points = codePoints(text) ?? text;
  const last = end ?? points.length;
  return start < 0 || last > points.length || start > last ? OUT_OF_RANGE : slice(points, start, last);
});

function search(backwards: boolean): CelFunction {
  return onText((text, part, from) => {
    if (typeof part !== "string" || (from !== undefined && !isPosition(from))) return NO_OVERLOAD;
    const points = codePoints(text);
    if (from !== undefined && (from < 0 || from > (points ?? text).length)) return OUT_OF_RANGE;
    const unit = from === undefined || points === undefined ? from : points.slice(0, from).join("").length;
    const found = backwards ? text.lastIndexOf(part, unit) : text.indexOf(part, unit);
    return found < 0 || points === undefined ? found : codePointLength(text.slice(0, found));
  });
}

export const indexOf: CelFunction = search(false);
export const lastIndexOf: CelFunction = search(true);

/** The length is known before anything is built, so that a short text cannot grow into a huge one. */
function replace(run: Run, text: unknown, ...args: unknown[]): unknown {
  const [from, to, limit = -1] = args;
  if (typeof text !== "string" || typeof from !== "string" || typeof to !== "string" || !isPosition(limit)) {
    return NO_OVERLOAD;
  }
  if (run.spendLength(text.length * 4)) return COST_LIMIT;
  const most = from === "" ? text.length + 1 : Math.floor(text.length / from.length);
  if (most * to.length > MAX_RESULT_LENGTH / 8) {
    const count = from === "" ? most : text.split(from).length - 1;
    if (run.spendLength(text.length + count * to.length)) return COST_LIMIT;
  } else if (run.spendLength(most * to.length)) return COST_LIMIT;
  if (limit < 0) return text.replaceAll(from, () => to);
  let done = 0;
  return text.replaceAll(from, (found) => (done++ < limit ? to : found));
}

function split(run: Run, text: unknown, separator: unknown, limit: unknown = -1): unknown {
  if (typeof text !== "string" || typeof separator !== "string" || !isPosition(limit)) return NO_OVERLOAD;
  if (run.spend(1 + (text.length >> 4))) return COST_LIMIT;
  if (limit === 0) return [];
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
  return run.spendLength(value.length * 4) ? COST_LIMIT : [...value].toReversed().join("");
}

/** Ends are found by walking in, because a pattern anchored at the end tries every start. */
const trim = onText((text) => {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE_SPACE.test(text[start] as string)) start++;
  while (end > start && WHITE_SPACE.test(text[end - 1] as string)) end--;
  return text.slice(start, end);
});

const WHITE_SPACE = /\p{White_Space}/u;

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

const quote = onText((text) => `"${[...text.toWellFormed()].map((char) => QUOTED.get(char) ?? char).join("")}"`);

const lowerAscii = onText((text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase()));
const upperAscii = onText((text) => text.replace(/[a-z]+/g, (part) => part.toUpperCase()));

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

/**
 * Regular expressions in RE2 syntax, for `matches`, `find` and `regexReplace`, and for the path matches of routes. RE2
 * never backtracks, so the time is linear in the text for every pattern and ReDoS is not possible. A pattern that is
 * only a literal with anchors becomes a plain string comparison.
 */
import { RE2JS } from "re2js";

import type { Run } from "../budget.ts";
import { COST_LIMIT, Failure } from "../errors.ts";
import { Automaton } from "./automaton.ts";

const MAX_PATTERN_LENGTH = 4096;
/**
 * RE2 compiles a counted repetition into that many copies. The library limits nested counts only; this limits the sum
 * of all copies, because one text may have to be followed through each copy at once.
 */
const MAX_REPETITIONS = 1000;
const MAX_CACHED = 256;
/** Price of compiling a pattern, in steps: a fixed part, and a part for each character. */
const COMPILE_STEPS = 300;
const COMPILE_STEPS_PER_UNIT = 10;

export const NOT_RE2 = "not a regular expression in RE2 syntax";

export interface Regex {
  readonly pattern: RE2JS;
  readonly automaton: Automaton;
  /** Number of instructions of the compiled pattern. */
  readonly size: number;
}

const cache = new Map<string, Regex | Failure>();

/**
 * Compiles a pattern that is only known while an expression runs, and charges for it. A cache keeps the MAX_CACHED
 * newest patterns, so that a repeated one is free.
 */
export function regex(run: Run, pattern: string): Regex | Failure {
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  if (run.spend(COMPILE_STEPS + pattern.length * COMPILE_STEPS_PER_UNIT)) return COST_LIMIT;
  const compiled = compilePattern(pattern);
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value as string);
  cache.set(pattern, compiled);
  return compiled;
}

/** Compiles a pattern of the configuration, without a budget: no request waits for it. */
export function compilePattern(text: string): Regex | Failure {
  const pattern = parsePattern(text);
  if (pattern instanceof Failure) return pattern;
  return { pattern, automaton: new Automaton(pattern), size: pattern.programSize() };
}

/** Compiles a pattern that has to cover the whole text, as path matches of routes do. */
export function compileWholePattern(text: string): Automaton | Failure {
  const pattern = parsePattern(text);
  return pattern instanceof Failure ? pattern : new Automaton(pattern, true);
}

function parsePattern(text: string): RE2JS | Failure {
  if (text.length > MAX_PATTERN_LENGTH) return new Failure("invalid_regex", "the pattern is too long");
  if (repetitionsOf(text) > MAX_REPETITIONS) return new Failure("invalid_regex", "the pattern repeats too often");
  try {
    return RE2JS.compile(text);
  } catch {
    // The message of the library quotes the pattern, which may come from a request.
    return new Failure("invalid_regex", NOT_RE2);
  }
}

const COUNT = /\{(\d+)(?:,(\d*))?\}/y;
const TOO_MANY = MAX_REPETITIONS + 1;

/**
 * Counts the copies that the counted repetitions of a pattern make; copies inside a group count again for each copy of
 * the group. The scan runs before the library parses the pattern, so it must be safe for invalid ones as well.
 */
function repetitionsOf(text: string): number {
  const outer: number[] = [];
  let copies = 0;
  /** Copies within the atom before the current position, which a quantifier here would repeat. */
  let last = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === "(") {
      outer.push(copies);
      [copies, last] = [0, 0];
    } else if (char === ")") {
      last = copies;
      copies = Math.min(TOO_MANY, copies + (outer.pop() ?? 0));
    } else if (char === "{") {
      COUNT.lastIndex = at;
      const [whole, low = "0", high] = COUNT.exec(text) ?? [];
      if (whole === undefined) continue;
      const count = Math.max(1, Number(low), Number(high ?? 0));
      const repeated = Math.min(TOO_MANY, count * (1 + last));
      copies = Math.min(TOO_MANY, copies + repeated - last);
      last = repeated;
      at += whole.length - 1;
    } else if (char !== "*" && char !== "+" && char !== "?") {
      if (char === "\\") at = endOfEscape(text, at);
      if (char === "[") at = endOfClass(text, at);
      last = 0;
    }
  }
  return copies;
}

/** @returns the index of the last character of the escape that starts with the backslash at `at` */
function endOfEscape(text: string, at: number): number {
  if (text.charAt(at + 1) !== "Q") return at + 1;
  const end = text.indexOf("\\E", at);
  return end < 0 ? text.length : end + 1;
}

/** @returns the index of the bracket that closes a class; a bracket as the first character belongs to the class */
function endOfClass(text: string, start: number): number {
  let at = start + (text.charAt(start + 1) === "^" ? 2 : 1);
  if (text.charAt(at) === "]") at++;
  for (; at < text.length && text.charAt(at) !== "]"; at++) {
    if (text.charAt(at) === "\\") at++;
    else if (text.startsWith("[:", at)) at = Math.max(at, text.indexOf(":]", at) + 1);
  }
  return at;
}

/** Characters times instructions that cost one step when the position of a match is needed. */
const PLACES_PER_STEP = 5;

/** @returns true when the budget does not suffice to locate a match in a text of this length */
export function spendFind(run: Run, { size }: Regex, length: number): boolean {
  return run.spend(1 + Math.ceil((length * size) / PLACES_PER_STEP));
}

export function matches(run: Run, text: string, pattern: string): boolean | Failure {
  const compiled = regex(run, pattern);
  return compiled instanceof Failure ? compiled : compiled.automaton.test(run, text);
}

/** Returns a matcher for a pattern that is known at compilation. */
export function literalMatcher(pattern: string): (run: Run, text: string) => boolean | Failure {
  const simple = simpleMatcher(pattern);
  if (simple !== undefined) {
    return (run, text) => (run.spendLength(text.length) ? COST_LIMIT : simple(text));
  }
  const compiled = compilePattern(pattern);
  if (compiled instanceof Failure) return () => compiled;
  return (run, text) => compiled.automaton.test(run, text);
}

const LITERAL = /^(\^?)([^\\.+*?()[\]{}|^$]*)(\$|\.\*)?$/;

function simpleMatcher(pattern: string): ((text: string) => boolean) | undefined {
  const parts = LITERAL.exec(pattern);
  if (parts === null) return undefined;
  const [, start, literal = "", tail] = parts;
  const anchored = start === "^";
  if (tail === "$") return anchored ? (text) => text === literal : (text) => text.endsWith(literal);
  return anchored ? (text) => text.startsWith(literal) : (text) => text.includes(literal);
}

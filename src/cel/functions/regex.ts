/**
 * Regular expressions in RE2 syntax. The engine never backtracks, so time is linear in the text whatever the pattern
 * says; a pattern that is only a literal with anchors becomes a string comparison.
 */
import { RE2JS } from "re2js";

import type { Run } from "../budget.ts";
import { COST_LIMIT, Failure } from "../errors.ts";

const MAX_PATTERN_LENGTH = 4096;
/** A compiled repetition is as large as its count. The engine bounds nested counts; this bounds those side by side. */
const MAX_REPETITIONS = 1000;
const MAX_CACHED = 256;
/** UTF-16 units that cost one step: matching is slower than copying. */
const UNITS_PER_STEP = 32;

export const NOT_RE2 = "not a regular expression in RE2 syntax";

const cache = new Map<string, RE2JS | Failure>();

/** Compiles a pattern; the most recent ones are kept, because a pattern can also come from a request. */
export function regex(pattern: string): RE2JS | Failure {
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const compiled = compilePattern(pattern);
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value as string);
  cache.set(pattern, compiled);
  return compiled;
}

function compilePattern(pattern: string): RE2JS | Failure {
  if (pattern.length > MAX_PATTERN_LENGTH) return new Failure("invalid_regex", "the pattern is too long");
  let repetitions = 0;
  for (const [, low = "0", high] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) {
    repetitions += Math.max(Number(low), Number(high ?? 0));
  }
  if (repetitions > MAX_REPETITIONS) return new Failure("invalid_regex", "the pattern repeats too often");
  try {
    return RE2JS.compile(pattern);
  } catch {
    // The library's message quotes the pattern, which may come from a request.
    return new Failure("invalid_regex", NOT_RE2);
  }
}

/** @returns true when the budget does not allow a match over this text */
export function spendMatch(run: Run, text: string): boolean {
  return run.spend(1 + Math.floor(text.length / UNITS_PER_STEP));
}

export function matches(run: Run, text: string, pattern: string): boolean | Failure {
  if (pattern.length > 64 && run.spend(pattern.length)) return COST_LIMIT;
  const compiled = regex(pattern);
  if (compiled instanceof Failure) return compiled;
  return spendMatch(run, text) ? COST_LIMIT : compiled.test(text);
}

/** The same for a pattern known at compilation. */
export function literalMatcher(pattern: string): (run: Run, text: string) => boolean | Failure {
  const simple = simpleMatcher(pattern);
  if (simple !== undefined) {
    return (run, text) => (run.spendLength(text.length) ? COST_LIMIT : simple(text));
  }
  const compiled = compilePattern(pattern);
  if (compiled instanceof Failure) return () => compiled;
  return (run, text) => (spendMatch(run, text) ? COST_LIMIT : compiled.test(text));
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

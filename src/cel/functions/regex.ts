/**
 * Regular expressions in RE2 syntax. The engine never backtracks, so time is linear in the text whatever the pattern
 * says; a pattern that is only a literal with anchors becomes a string comparison.
 */
import { RE2JS } from "re2js";

import type { Run } from "../budget.ts";
import { COST_LIMIT, Failure } from "../errors.ts";
import { Automaton } from "./automaton.ts";

const MAX_PATTERN_LENGTH = 4096;
/** A compiled repetition is as large as its count. The engine bounds nested counts; this bounds those side by side. */
const MAX_REPETITIONS = 1000;
const MAX_CACHED = 256;
/** What compiling a pattern costs, in steps: so much, and more for each character and for each counted repetition. */
const COMPILE_STEPS = 300;
const COMPILE_STEPS_PER_UNIT = 10;

export const NOT_RE2 = "not a regular expression in RE2 syntax";

export interface Regex {
  readonly pattern: RE2JS;
  readonly automaton: Automaton;
  /** Instructions of the compiled pattern. */
  readonly size: number;
}

const cache = new Map<string, Regex | Failure>();

/**
 * Compiles a pattern that is known only while an expression runs. The most recent ones are kept;
 * a new one is charged for.
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

/** Compiles a pattern of configuration: whoever wrote it waits for nothing. */
export function compilePattern(text: string): Regex | Failure {
  if (text.length > MAX_PATTERN_LENGTH) return new Failure("invalid_regex", "the pattern is too long");
  let repetitions = 0;
  for (const [, low = "0", high] of text.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) {
    repetitions += Math.max(Number(low), Number(high ?? 0));
  }
  if (repetitions > MAX_REPETITIONS) return new Failure("invalid_regex", "the pattern repeats too often");
  try {
    const pattern = RE2JS.compile(text);
    return { pattern, automaton: new Automaton(pattern), size: pattern.programSize() };
  } catch {
    // The library's message quotes the pattern, which may come from a request.
    return new Failure("invalid_regex", NOT_RE2);
  }
}

/** Units of text times instructions of a pattern that cost one step, where the place of a match is asked for. */
const PLACES_PER_STEP = 5;

/** @returns true when the budget does not allow to find the place of a match in so much text */
export function spendFind(run: Run, { size }: Regex, length: number): boolean {
  return run.spend(1 + Math.ceil((length * size) / PLACES_PER_STEP));
}

export function matches(run: Run, text: string, pattern: string): boolean | Failure {
  const compiled = regex(run, pattern);
  return compiled instanceof Failure ? compiled : compiled.automaton.test(run, text);
}

/** The same for a pattern known at compilation. */
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

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { RULE_STEPS, Run } from "../../../src/cel/budget.ts";
import { Automaton } from "../../../src/cel/functions/automaton.ts";
import { COST_LIMIT } from "../../../src/cel/errors.ts";
import { findMatches } from "../../../src/cel/functions/match-finder.ts";
import { compilePattern } from "../../../src/cel/functions/regex.ts";
import { noise } from "./support.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

function runOf(steps: number): Run {
  return new Run({ root: () => undefined }, 0, steps);
}

const ATOMS = [
  ..."a|b|.|^|$|k|s|K|é|(?i)k|(?i:s)|(?m)^|(?m)$|(?s).|[ab]|[^a]|[é-ü]|[[:alpha:]]|x{2,3}|".split("|"),
  ...String.raw`\d \w \s \b \B \A \z \pL \n`.split(" "),
];
const QUANTIFIERS = ["*", "+", "?", "*?", "{2}"];
const CHARACTERS = [
  "a",
  "b",
  "x",
  "k",
  "K",
  "s",
  "S",
  "\u017f",
  "\u212a",
  "é",
  "ü",
  "0",
  "_",
  " ",
  "\n",
  "😀",
  "\ud83d",
];

const pattern: fc.Arbitrary<string> = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(...ATOMS),
    fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
    fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(${a}|${b})`),
    fc.tuple(tie("pattern"), fc.constantFrom(...QUANTIFIERS)).map(([a, quantifier]) => `(?:${a})${quantifier}`),
  ),
})).pattern;
const text = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 12 }).map((parts) => parts.join(""));

test("the automaton and the library agree whether a pattern covers a text", () => {
  assertProperty(
    fc.property(pattern, fc.array(text, { minLength: 3, maxLength: 6 }), (source, texts) => {
      const compiled = RE2JS.compile(source);
      const automaton = new Automaton(compiled, true);
      for (const given of texts) assert.equal(automaton.test(runOf(RULE_STEPS), given), compiled.matches(given), given);
    }),
    { numRuns: 3000 },
  );
});

test("the automaton and the library agree whether a pattern occurs", () => {
  assertProperty(
    fc.property(pattern, fc.array(text, { minLength: 3, maxLength: 6 }), (source, texts) => {
      const compiled = RE2JS.compile(source);
      const automaton = new Automaton(compiled);
      for (const given of texts) assert.equal(automaton.test(runOf(RULE_STEPS), given), compiled.test(given), given);
    }),
    { numRuns: 3000 },
  );
});

test("a known step is nearly free, and a pattern that needs ever new states ends with its budget", () => {
  const budget = 20_000;
  const cheap = runOf(budget);
  assert.equal(new Automaton(RE2JS.compile("(a+)+$")).test(cheap, "a".repeat(64_000)), true);
  assert.ok(budget - cheap.steps < 2000);
  assert.equal(new Automaton(RE2JS.compile("[ab]*a[ab]{200}c")).test(runOf(budget), noise("ab", 64_000)), COST_LIMIT);
});

test("an automaton that was emptied goes on with the right answer", () => {
  const compiled = RE2JS.compile("[ab]*a[ab]{9}c");
  const automaton = new Automaton(compiled);
  const letters = noise("ab", 5000);
  for (const given of [letters, `${letters}a${"b".repeat(9)}c`]) {
    assert.equal(automaton.test(runOf(RULE_STEPS), given), compiled.test(given));
  }
});

/** Returns the matches of the library that are not empty. */
function libraryMatches(source: string, given: string): { start: number; end: number }[] {
  const matcher = RE2JS.compile(source).matcher(given);
  const found: { start: number; end: number }[] = [];
  while (matcher.find())
    if (matcher.end() > matcher.start()) found.push({ start: matcher.start(), end: matcher.end() });
  return found;
}

function finderMatches(source: string, given: string, steps: number): unknown {
  const compiled = compilePattern(source);
  assert.ok("automaton" in compiled);
  return findMatches(runOf(steps), given, compiled);
}

test("the finder and the library find the same matches", () => {
  const longer = fc.tuple(text, fc.nat(3), text).map(([a, count, b]) => a + "- ".repeat(count * 300) + b);
  assertProperty(
    fc.property(pattern, fc.array(fc.oneof(text, longer), { minLength: 3, maxLength: 6 }), (source, texts) => {
      for (const given of texts)
        assert.deepEqual(finderMatches(source, given, RULE_STEPS), libraryMatches(source, given), given);
    }),
    { numRuns: 800 },
  );
});

test("a search that becomes quadratic ends when its budget is spent", () => {
  assert.equal(finderMatches("(?s)a(.*z)?", "a".repeat(20_000), 40_000), COST_LIMIT);
  assert.equal((finderMatches("a+", "a".repeat(20_000), 40_000) as unknown[]).length, 1);
});

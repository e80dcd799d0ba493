/**
 * Expressions for comparison with a second engine. Every part stands in `dyn()`, so that neither engine can refuse by
 * type what the other one runs; and all numbers of an expression have one type, because here a number from outside may
 * be an int and a double at once, which the language itself does not know.
 *
 * Left out is what cel-go does beyond the language or otherwise: keys of any type and repeated ones, the negative of a
 * duration, has() of what is no map, walks over an empty text, and exponents in the text of doubles from 1e6. The order
 * of the keys of a map is left out as well, because cel-go walks them in the random order of Go.
 */
import fc from "fast-check";

type Numbers = "int" | "uint" | "double";

const NUMBERS: Readonly<Record<Numbers, readonly string[]>> = {
  int: [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "-13",
    "1000000007",
    "9223372036854775807",
    "-9223372036854775808",
    "4503599627370497",
  ],
  uint: ["0u", "1u", "2u", "7u", "18446744073709551615u", "4503599627370497u"],
  double: ["0.0", "-0.0", "1.0", "1.5", "-2.25", "7.0", "1e308", "-1e308", "1e-7", "123456789.125", "1e21"],
};
const TEXTS = ["''", "'a'", "'ab'", "'abc'", "'b'", "'é😀'", "'A b'", "'a,b,c'", "'\\n'", "'1'", "'true'"];
const OTHERS = ["true", "false", "null", "b''", "b'ab'", "b'\\xff'", "duration('1h30m')", "duration('-0.5s')"];
const TIMES = ["timestamp('2024-02-29T12:30:45.123Z')", "timestamp('1969-12-31T23:59:59Z')"];
const PATTERNS = ["'a+'", "'^a'", "'b$'", "'[ab]*c'", "'(a|b)+'", "'('", "'\\\\s'"];
const OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in", "&&", "||"];
const TEXT_TESTS = ["startsWith", "endsWith", "contains"];
const TEXT_CHANGES = ["lowerAscii()", "upperAscii()", "trim()", "split(',')", "replace('a', 'xy')", "join('-')"];
const DATE_PARTS = [
  "getFullYear()",
  "getMonth()",
  "getDayOfYear()",
  "getDayOfWeek()",
  "getHours('-02:30')",
  "getSeconds()",
];
const TESTS = ["all", "exists", "exists_one"];
const LIST_WALKS = [...TESTS, "map", "filter"];
const VARIABLES = ["x", "y"];

export const expressions: fc.Arbitrary<string> = fc
  .constantFrom<Numbers>("int", "uint", "double")
  .chain((numbers) => expressionsWith(numbers, []));

function expressionsWith(numbers: Numbers, inScope: readonly string[]): fc.Arbitrary<string> {
  const leaf = fc.constantFrom(...NUMBERS[numbers], ...TEXTS, ...OTHERS, ...TIMES, ...inScope);
  const { node } = fc.letrec<{ node: string }>((tie) => {
    const part = tie("node");
    const two = fc.tuple(part, part);
    return {
      node: fc
        .oneof(
          { maxDepth: 4, withCrossShrink: true },
          leaf,
          fc.tuple(part, fc.constantFrom(...OPERATORS), part).map(([a, operator, b]) => `${a} ${operator} ${b}`),
          part.map((a) => `!${a}`),
          fc.constantFrom(...NUMBERS[numbers]).map((number) => `-(${number})`),
          fc.tuple(part, part, part).map(([a, b, c]) => `${a} ? ${b} : ${c}`),
          fc.array(part, { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
          two.map(([a, b]) => `{'ab': ${a}, ${numbers === "double" ? "'n'" : NUMBERS[numbers][1]}: ${b}, true: ${a}}`),
          two.map(([a, b]) => `${a}[${b}]`),
          part.map((a) => `has({'a': ${a}}.a) && !has({'b': ${a}}.a)`),
          part.map((a) => `${a}.ab`),
          fc.tuple(part, fc.constantFrom(...TEXT_TESTS), part).map(([a, name, b]) => `${a}.${name}(${b})`),
          fc.tuple(part, fc.constantFrom(...PATTERNS)).map(([a, pattern]) => `${a}.matches(${pattern})`),
          fc.tuple(part, fc.constantFrom(...TEXT_CHANGES, ...DATE_PARTS)).map(([a, change]) => `${a}.${change}`),
          part.map((a) => (numbers === "double" ? `[${a}].map(v, v)[0]` : `string(${a})`)),
          part.map((a) => (numbers === "int" ? `size(${a})` : `type(${a}) == type(${a})`)),
          part.map((a) => `string(${numbers === "double" ? "'ab'" : a}).reverse()`),
          walk(part, numbers, inScope),
        )
        .map((text) => `dyn(${text})`),
    };
  });
  return node;
}

/** Walks nest as deep as there are names for their variables. */
function walk(part: fc.Arbitrary<string>, numbers: Numbers, inScope: readonly string[]): fc.Arbitrary<string> {
  const name = VARIABLES[inScope.length];
  if (name === undefined) return part;
  const body = expressionsWith(numbers, [...inScope, name]);
  const two = fc.tuple(part, part);
  const walks = fc.oneof(
    fc.tuple(
      fc.array(part, { maxLength: 4 }).map((items) => `[${items.join(", ")}]`),
      fc.constantFrom(...LIST_WALKS),
    ),
    fc.tuple(
      two.map(([a, b]) => `{'a': ${a}, 'b': ${b}}`),
      fc.constantFrom(...TESTS),
    ),
    // The list that they make has the order of the keys, so the map has one key only.
    fc.tuple(
      part.map((a) => `{'a': ${a}}`),
      fc.constantFrom("map", "filter"),
    ),
  );
  return fc.tuple(walks, body).map(([[range, macro], condition]) => `${range}.${macro}(${name}, ${condition})`);
}

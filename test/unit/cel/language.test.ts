import assert from "node:assert/strict";
import { test } from "node:test";

import { compileExpression, parseExpression } from "../../../src/cel/compile/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { evaluate, failureCode, fails, gives, scopeOf } from "./support.ts";

gives([
  ["1 + 2 * 3", 7n],
  ["(1 + 2) * 3", 9n],
  ["7 / 2", 3n],
  ["-7 / 2", -3n],
  ["-7 % 3", -1n],
  ["7.0 / 2.0", 3.5],
  ["2.0 * 3.0", 6],
  ["0x10 + 1", 17n],
  ["9007199254740993 + 1", 9007199254740994n],
  ["9223372036854775807", 9223372036854775807n],
  ["-9223372036854775808", -9223372036854775808n],
  ["1 == 1.0 && 1u == 1 && 1 < 1.5 && 2u > 1.5", true],
  ['"a" + "b"', "ab"],
  ["'it\\'s \\u00e9 \\x41'", "it's é A"],
  ['r"\\d"', "\\d"],
  ["'''a\nb'''", "a\nb"],
  ['b"\\xff\\x00" == b"\\377\\000"', true],
  ['size("héllo 😀")', 7n],
  ["[1, 2] + [3]", [1n, 2n, 3n]],
  ["2 in [1, 2]", true],
  ['"a" in {"a": 1}', true],
  ['{"a": 1}.a', 1n],
  ['{1: "x"}[1.0]', "x"],
  ["true ? 1 : 2", 1n],
  ["[1, 2, 3].all(x, x > 0)", true],
  ["[1, 2, 3].exists(x, x == 2)", true],
  ["[1, 2, 3].exists_one(x, x > 2)", true],
  ["[1, 2, 3].map(x, x * x)", [1n, 4n, 9n]],
  ["[1, 2, 3].map(x, x > 1, x * x)", [4n, 9n]],
  ["[1, 2, 3].filter(x, x != 2)", [1n, 3n]],
  ['{"a": 1, "b": 2}.exists(k, k == "b")', true],
  ["[[1, 2], [3]].map(xs, xs.map(x, x + size(xs)))", [[3n, 4n], [4n]]],
  ["has({'a': null}.a) && !has({'a': 1}.b)", true],
  ["type(1) == int && type([]) == list && type(type(1)) == type", true],
  ['int("42") + int(2.9) + int(3u)', 47n],
  ['double("1.5") + double(1)', 2.5],
  ['bool("true") && !bool("0")', true],
  ["string(1.0) + string(-2) + string(3u) + string(true)", "1-23true"],
  ['string(duration("1h30m1.5s"))', "5401.5s"],
  ['string(timestamp("2024-02-29T12:00:00.120Z") + duration("1s"))', "2024-02-29T12:00:01.12Z"],
  ['timestamp("2024-02-29T23:30:00Z").getDate("Europe/Berlin")', 1n],
  ['timestamp("2024-02-29T23:30:00Z").getHours("-01:30")', 22n],
  ['timestamp("2024-01-02T00:00:00Z") - timestamp("2024-01-01T00:00:00Z") == duration("24h")', true],
  ['"%s is %d and %.2f %x".format(["a", 3, 1.5, 255])', "a is 3 and 1.50 ff"],
]);

/** Text of RFC 3339 and the moment that it names; "invalid_argument" and "overflow" for what names none. */
const TIMES: readonly (readonly [string, string])[] = [
  ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"],
  ["2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"],
  ["2023-02-28T23:59:59.999999999Z", "2023-02-28T23:59:59.999999999Z"],
  ["2023-02-28T23:59:59.1234567891Z", "2023-02-28T23:59:59.123456789Z"],
  ["2023-03-01T00:30:00+01:00", "2023-02-28T23:30:00Z"],
  ["2023-02-28T23:30:00-01:00", "2023-03-01T00:30:00Z"],
  ["2023-01-01t00:00:00z", "2023-01-01T00:00:00Z"],
  ["2023-01-01T00:00:00-00:00", "2023-01-01T00:00:00Z"],
  ["2023-01-01T23:00:00+23:59", "2022-12-31T23:01:00Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
  ["0000-12-31T23:30:00-00:30", "0001-01-01T00:00:00Z"],
  ["0004-02-29T00:00:00Z", "0004-02-29T00:00:00Z"],
  ["9999-12-31T23:59:59.5Z", "9999-12-31T23:59:59.5Z"],
  ["0001-01-01T00:00:00+00:01", "overflow"],
  ["0000-12-31T23:59:59Z", "overflow"],
  ["9999-12-31T23:59:59-00:01", "overflow"],
  ...[
    "2023-02-29T00:00:00Z",
    "2023-02-29T00:00:00.5Z",
    "2023-02-29T00:00:00+02:00",
    "2023-02-29T23:59:59-12:00",
    "2023-02-30T00:00:00Z",
    "2024-02-30T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2100-02-29T00:00:00Z",
    "2023-04-31T00:00:00Z",
    "2023-06-31T00:00:00Z",
    "2023-09-31T00:00:00+01:00",
    "2023-11-31T00:00:00.1-01:00",
    "2023-01-32T00:00:00Z",
    "2023-01-00T00:00:00Z",
    "2023-00-01T00:00:00Z",
    "2023-13-01T00:00:00Z",
    "2023-01-01T24:00:00Z",
    "2023-01-01T23:60:00Z",
    "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:60.5+00:00",
    "2023-01-01T00:00:00",
    "2023-01-01T00:00Z",
    "2023-01-01",
    "2023-01-01 00:00:00Z",
    "2023-01-01T00:00:00.Z",
    "2023-01-01T00:00:00,5Z",
    "2023-01-01T00:00:00+24:00",
    "2023-01-01T00:00:00+01:60",
    "2023-01-01T00:00:00+0100",
    "2023-1-1T00:00:00Z",
    "+2023-01-01T00:00:00Z",
    "12023-01-01T00:00:00Z",
    "2023-01-01T00:00:00ZZ",
    " 2023-01-01T00:00:00Z",
    "",
  ].map((text) => [text, "invalid_argument"] as const),
];

for (const [text, expected] of TIMES) {
  test(`timestamp("${text}") is ${expected}, as a constant, from a claim and computed`, () => {
    const claims = { jwt: { when: text } };
    const halves = [text.slice(0, 12), text.slice(12)].map((half) => JSON.stringify(half)).join(" + ");
    for (const argument of [JSON.stringify(text), "jwt.when", halves]) {
      const source = `string(timestamp(${argument}))`;
      const result = (): unknown => evaluate(source, claims);
      if (expected.includes("-")) assert.equal(result(), expected, source);
      else assert.equal(failureCode(result), expected, source);
    }
  });
}

gives([
  ['timestamp("0099-03-01T00:00:00Z").getDayOfYear()', 59n],
  ['timestamp("0099-03-01T00:00:00Z").getFullYear("Asia/Tokyo")', 99n],
  ['timestamp("2024-12-31T12:00:00Z").getDayOfYear()', 365n],
]);

gives([
  ["true || jwt.sub == 'x'", true],
  ["jwt.sub == 'x' || true", true],
  ["jwt.sub == 'x' && false", false],
  ["[1, 0].exists(x, 1 / x == 1)", true],
  ["[0, 2].all(x, 1 / x > 5)", false],
]);

fails([
  ["jwt.sub == 'x' || false", "no_such_attribute"],
  ["1 + 1.0", "no_such_overload"],
  ["0.5 - dyn(timestamp('2026-01-01T00:00:00Z')).getFullYear()", "no_such_overload"],
  ["dyn('abc').size() * 0.5", "no_such_overload"],
  ["1 + 1u", "no_such_overload"],
  ['"a" + 1', "no_such_overload"],
  ["1 ? 2 : 3", "no_such_overload"],
  ["!1", "no_such_overload"],
  ["1 / 0", "division_by_zero"],
  ["9223372036854775807 + 1", "overflow"],
  ["-(-9223372036854775808)", "overflow"],
  ["0u - 1u", "overflow"],
  ["[1][1]", "index_out_of_range"],
  ["{'a': 1}.b", "no_such_key"],
  ["{'a': 1, 'a': 2}", "repeated_key"],
  ['int("4x")', "invalid_argument"],
  ['string(b"\\xff")', "invalid_utf8"],
  ['"a".matches("(")', "invalid_regex"],
  ["null.a", "no_such_overload"],
]);

fails([
  ["", "syntax"],
  ["1 +", "syntax"],
  ["a.b.", "syntax"],
  ['"open', "syntax"],
  ["1 = 1", "syntax"],
  ["if", "syntax"],
  ["f(1,)", "syntax"],
  ["9223372036854775808", "syntax"],
  ['"\\q"', "syntax"],
  ["request.?path", "syntax"],
  ["Message{a: 1}", "unsupported"],
  ["[1].map(a.b, 1)", "syntax"],
  ["has(1)", "syntax"],
]);

test("an unknown root is refused at compilation, with its position and the likely name", () => {
  assert.throws(
    () => parseExpression('true && reqest.path == "/"', REQUEST_ENVIRONMENT),
    (error) => {
      assert.ok(error instanceof CelError);
      assert.deepEqual([error.code, error.position], ["unknown_variable", 8]);
      assert.match(error.message, /did you mean `request`\?/);
      return true;
    },
  );
});

test("an unknown field of a known root is refused, also in has() and behind a text index", () => {
  for (const source of ["request.pth", "has(request.pth)", 'request["pth"]', "proxy.gateway.nam", "llm.cost.sum"]) {
    assert.equal(
      failureCode(() => parseExpression(source, REQUEST_ENVIRONMENT)),
      "unknown_variable",
    );
  }
});

test("an unknown function, and a known one with the wrong number of arguments, are refused by name", () => {
  assert.throws(() => parseExpression('request.path.startWith("a")', REQUEST_ENVIRONMENT), /did you mean `startsWith`/);
  assert.throws(() => parseExpression("request.path.startsWith()", REQUEST_ENVIRONMENT), /does not take 0 argument/);
});

test("fields of open roots are not checked, and a local variable hides a root", () => {
  parseExpression("jwt.anything.at.all", REQUEST_ENVIRONMENT);
  assert.deepEqual(evaluate("[{'pth': 1}].map(request, request.pth)"), [1n]);
});

test("one compiled expression serves many requests without leaving anything behind", () => {
  const expression = compileExpression("[1, 2].map(x, x + jwt.n)", REQUEST_ENVIRONMENT);
  assert.deepEqual(expression.evaluate(scopeOf({ jwt: { n: 1 } })), [2n, 3n]);
  assert.deepEqual(expression.evaluate(scopeOf({ jwt: { n: 10 } })), [11n, 12n]);
});

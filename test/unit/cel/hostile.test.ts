import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import type { Environment } from "../../../src/cel/environment.ts";
import { RULE_ENVIRONMENT, REQUEST_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { evaluate, failureCode, fails, gives, noise, scopeOf } from "./support.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

const LONG = "a".repeat(100_000);

fails(
  [
    [`"${"a".repeat(16_384)}"`, "too_long"],
    ["(".repeat(300) + "1" + ")".repeat(300), "too_deep"],
    ["[".repeat(300) + "]".repeat(300), "too_deep"],
    ["!".repeat(300) + "true", "too_deep"],
    ["1" + " + 1".repeat(300), "too_deep"],
    ["jwt" + ".a".repeat(300), "too_deep"],
    ["true ? 1 : ".repeat(300) + "1", "too_deep"],
    ["jwt.list.all(a, jwt.list.all(b, jwt.list.all(c, a + b + c >= 0)))", "cost_limit"],
    ["jwt.list.map(a, jwt.list.map(b, jwt.list))", "cost_limit"],
    ["jwt.text.replace('a', jwt.text)", "cost_limit"],
    ["jwt.text.replace('', jwt.text)", "cost_limit"],
    ["[1, 2, 3, 4, 5, 6, 7, 8].map(x, jwt.text.split(''))", "cost_limit"],
    [`${"jwt.text.with(a, a + a).with(a, a + a)".padEnd(10)}${".with(a, a + a)".repeat(20)}`, "cost_limit"],
    ["jwt.list.exists(x, jwt.text.matches('(x+x+)+y$'))", "cost_limit"],
    ["jwt.list.map(a, jwt.list)", "cost_limit"],
    ["jwt.list.exists(a, jwt.list.all(b, jwt.list + [a] == jwt.list + [b])) || true", "cost_limit"],
    ["default(jwt.list.map(a, jwt.list.map(b, [a, b])), 1)", "cost_limit"],
    ["coalesce(jwt.list.map(a, jwt.list.map(b, [a, b])), 1)", "cost_limit"],
    ["jwt.list.all(a, timestamp('2024-01-01T00:00:00Z').getHours('Asia/Tokyo') >= 0)", "cost_limit"],
    ["jwt.list.all(a, ('x' + string(a)).matches('[a-z]' + string(a)))", "cost_limit"],
    ["jwt.list.all(a, jwt.text.startsWith(jwt.text))", "cost_limit"],
    ["jwt.list.all(a, toJson(jwt.list) != '')", "cost_limit"],
    ["jwt.list.all(a, sha256.encode(jwt.text) != '')", "cost_limit"],
    ["jwt.list.all(a, json(jwt.numbers) != null)", "cost_limit"],
    ["jwt.text.regexReplace('(a|b)*(c)?$', 'x')", "cost_limit"],
    ["[jwt.text].map(t, [t, t, t, t, t, t, t, t].join('').split(''))", "cost_limit"],
    ["'%s'.format([jwt.nested])", "cost_limit"],
    ["jwt.mixed.matches('[ab]*a[ab]{200}c')", "cost_limit"],
    ["'a'.matches('((a{1,1000}){1,1000}){1,1000}')", "invalid_regex"],
    [`'a'.matches('${"a{1000}".repeat(500)}')`, "invalid_regex"],
    ["'a'.matches('(?=a)')", "invalid_regex"],
    ["'%999f'.format([1.0])", "invalid_argument"],
  ],
  {
    jwt: {
      list: Array.from({ length: 500 }, (_, n) => n),
      text: LONG,
      numbers: JSON.stringify(Array.from({ length: 5000 }, (_, n) => n)),
      nested: nested(200, LONG),
      mixed: noise("ab", 20_000),
    },
  },
);

function nested(depth: number, leaf: unknown): unknown {
  return depth === 0 ? leaf : [nested(depth - 1, leaf)];
}

gives(
  [
    ["jwt.megabyte.matches('(a+)+$')", true],
    ["jwt.unmatched.matches('(a|aa)+$')", false],
    ["jwt.text.matches('(a+)+$')", true],
    ["(jwt.text + '!').matches('(a+)+$')", false],
    ["jwt.text.matches('^(a|aa)+$')", true],
    ["size(jwt.text.trim())", 100_000n],
    ["{'__proto__': 1}.__proto__", 1n],
    ["{'__proto__': {'admin': true}} == {}", false],
    ["has({'__proto__': {'admin': true}}.admin)", false],
    ["{'constructor': 1, 'hasOwnProperty': 2, 'toString': 3}.map(k, k)", ["constructor", "hasOwnProperty", "toString"]],
    ["jwt.own.hasOwnProperty + jwt.own['constructor']", 3n],
    ["has({}.merge(jwt.claims).admin) || has(jwt.claims.mapValues(v, v).admin)", false],
    ["toJson(jwt.claims.merge({'a': 1}))", '{"__proto__":{"admin":true},"a":1}'],
    ["toJson(flattenRecursive(jwt.claims))", '{"__proto__.admin":true}'],
    ["toJson(form.decode('__proto__=1&constructor=2'))", '{"__proto__":"1","constructor":"2"}'],
    [`json('{"__proto__": {"admin": true}}').filterKeys(k, k == 'admin') == {}`, true],
    ["jwt.claims.__proto__", new Map([["admin", true]])],
    ["has(jwt.claims.admin)", false],
    ["has(jwt.constructor) || has(jwt.toString) || 'hasOwnProperty' in jwt", false],
  ],
  {
    jwt: {
      text: LONG,
      megabyte: "a".repeat(1024 * 1024),
      unmatched: `${"a".repeat(1024 * 1024)}!`,
      own: { hasOwnProperty: 1, constructor: 2 },
      claims: JSON.parse('{"__proto__":{"admin":true}}'),
    },
  },
);

fails(
  [
    ["jwt.constructor", "no_such_key"],
    ["jwt['constructor']", "no_such_key"],
    ["jwt.__proto__", "no_such_key"],
    ["jwt.list.length", "no_such_overload"],
    ["jwt.text.length", "no_such_overload"],
    ["jwt.method", "no_such_overload"],
    ["jwt.foreign.source", "no_such_overload"],
  ],
  { jwt: { list: [1], text: "x", foreign: /x/, method: () => 1 } },
);

test("a function or a foreign object of the host never leaves an expression", () => {
  const jwt = { method: () => 1, foreign: new WeakMap() };
  for (const source of ["jwt.method", "jwt.foreign", "[jwt.method]", "toJson(jwt.method)", "string(jwt.foreign)"]) {
    assert.equal(
      failureCode(() => evaluate(source, { jwt })),
      "no_such_overload",
    );
  }
});

test("data that nest without end are a failed expression, not a crash", () => {
  let deep: unknown = 1;
  for (let n = 0; n < 20_000; n++) deep = [deep];
  for (const source of ["jwt.deep", "jwt.deep == [jwt.deep]", "toJson(jwt.deep)", "'%s'.format([jwt.deep])"]) {
    assert.equal(
      failureCode(() => evaluate(source, { jwt: { deep } })),
      "cost_limit",
    );
  }
});

const FRAGMENTS = [
  ..."()[]{}.,:?!+-*/%<>='\"\\` \n",
  ...'&& || == in 1 2.5 3u 0x true null "a" b"x" x jwt request has( self'.split(" "),
  ...".map(x, .all(x, .size() .matches( json( default( cidr( request.path jwt.a .with( [0]".split(" "),
];

function throwsOnlyCelErrors(source: string, environment: Environment): void {
  try {
    compileExpression(source, environment).evaluate(
      scopeOf({ request: { path: "/" }, jwt: { a: [1, "b"] }, self: {} }),
    );
  } catch (error) {
    assert.ok(error instanceof CelError, `${source}: ${String(error)}`);
  }
}

test("whatever the text is, nothing but a CelError is thrown", () => {
  const text = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 20 }).map((parts) => parts.join("")),
  );
  assertProperty(
    fc.property(text, (source) => {
      throwsOnlyCelErrors(source, REQUEST_ENVIRONMENT);
      throwsOnlyCelErrors(source, RULE_ENVIRONMENT);
    }),
    { numRuns: 3000 },
  );
});

test("whatever the arguments are, every function ends with a value or a CelError", () => {
  const values = [
    "null",
    "true",
    "-1",
    "1.5",
    "2u",
    "'a1'",
    "b'x'",
    "[1, 'a']",
    "{'a': 1}",
    "duration('1s')",
    "jwt",
    "int",
  ];
  for (const environment of [REQUEST_ENVIRONMENT, RULE_ENVIRONMENT]) {
    for (const key of environment.functions.keys()) {
      const [name = "", arity = ""] = key.split("/");
      const count = arity === "*" ? 2 : Number(arity);
      for (let n = 0; n < values.length; n++) {
        const at = (offset: number): string => values[(n + offset * 5) % values.length] ?? "null";
        const args = Array.from({ length: count }, (_, position) => at(position + 1)).join(", ");
        throwsOnlyCelErrors(name.startsWith(".") ? `(${at(0)})${name}(${args})` : `${name}(${args})`, environment);
      }
    }
  }
});

test("JSON that goes through an expression comes back the same", () => {
  assertProperty(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      const value: unknown = JSON.parse(text);
      const printed = evaluate("toJson(json(jwt.text))", { jwt: { text } });
      assert.deepEqual(JSON.parse(String(printed)), JSON.parse(JSON.stringify(value)));
    }),
  );
});

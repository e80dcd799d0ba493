import assert from "node:assert/strict";
import { test } from "node:test";
import { compileExpression, parseExpression } from "../../../src/cel/compile/compile-expression.ts";
import type { Environment } from "../../../src/cel/environment.ts";
import { RULE_ENVIRONMENT, REQUEST_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { environmentOf } from "../../../src/cel/environments/phases.ts";
import { evaluate, scopeOf } from "./support.ts";

/** Expression, position of the fault, and what the message says. */
const REFUSED: readonly (readonly [source: string, position: number, message: RegExp])[] = [
  ["request.path == 1", 13, /no such operation: string == int/],
  ["true && response.code == '200'", 22, /int == string/],
  ["request.path + 1", 13, /string \+ int/],
  ["1 + 1.0", 2, /int \+ double/],
  ["-request.path", 0, /"-" does not take string/],
  ["!request.path", 0, /"!" does not take string/],
  ["request.path && true", 7, /&& needs bool, not string/],
  ["request.path ? 1 : 2", 7, /the condition of \?: needs bool/],
  ["request.path.startsWith(1)", 13, /"startsWith" takes \(string, string\), not \(string, int\)/],
  ["size(1)", 0, /"size" takes .* not \(int\)/],
  ["math.sqrt('4')", 5, /"sqrt" takes/],
  ["math.greatest(1, 'a')", 5, /"greatest" takes/],
  ["request.pathh", 7, /unknown variable "request.pathh"; did you mean `request.path`\?/],
  ["request.headers.coockie('a')", 16, /unknown function "coockie"; did you mean `cookie`\?/],
  ["reqest.path", 0, /did you mean `request`\?/],
  ["source.identity.namspace", 15, /did you mean `source.identity.namespace`\?/],
  ["llm.params['temperatur']", 10, /did you mean `llm.params.temperature`\?/],
  ["request.path.all(c, c == 'a')", 7, /a walk needs list or map, not string/],
  ["source.subjectAltNames.exists(n, n == 1)", 35, /string == int/],
  ["source.subjectAltNames.exists(n, n)", 33, /the test of exists\(\) needs bool, not string/],
  ["source.subjectAltNames['a']", 22, /list<string>\[string\]/],
  ["source.port.bits", 11, /int has no fields to select "bits" from/],
  ["'a' in source.port", 4, /string in int/],
  ["apiKey.key == 'x'", 11, /secret == string/],
  ["{'a': 1}.mapValues(v, v + 'a')", 24, /int \+ string/],
  ["[1, 2].map(x, x.size())", 16, /"size" takes/],
  ["request.startTime + request.startTime", 18, /timestamp \+ timestamp/],
  ["cidr('10.0.0.0/8').containsIP(source.port)", 19, /"containsIP" takes/],
];

/** Constant arguments that can never be parsed: the expression, and where the argument stands in it. */
const NEVER_PARSED: readonly (readonly [source: string, position: number, environment?: Environment])[] = [
  ["request.path.matches('(')", 21],
  ["true || request.path.matches('[a-')", 29],
  ["matches(request.path, 'a**')", 22],
  [String.raw`request.path.matches('(?=a)')`, 21],
  [String.raw`request.path.matches('(a)\\1')`, 21],
  ["request.path.matches('a{600}b{600}')", 21],
  ["request.headers['x'].regexReplace('(', '')", 34],
  ["[1].exists(n, request.path.matches('('))", 35],
  ["has(jwt.sub) ? request.path.matches(')') : false", 36],
  ["duration('1 hour') > duration('1s')", 9],
  ["duration('1d') == duration('24h')", 9],
  ["duration('')", 9],
  ["request.startTime > timestamp('2023-02-29T00:00:00Z')", 30],
  ["request.startTime > timestamp('yesterday')", 30],
  ["timestamp('2023-02-28')", 10],
  ["cidr('10.0.0.0/33').containsIP(source.address)", 5],
  ["cidr('10.0.0.0').containsIP(source.address)", 5],
  ["cidr('::1/129').containsIP(source.address)", 5],
  ["cidr('10.0.0.0/8').containsIP('10.0.0.256')", 30],
  ["cidr('10.0.0.0/8').containsCIDR('10.0.0.0/40')", 32],
  ["ip('10.0.0.256').family() == 4", 3],
  ["ip('fe80::1%eth0').family() == 6", 3],
  ["ip.isCanonical('10')", 15],
  ["json('{').a", 5],
  ["json(b'[1,]')[0]", 5],
  ["unvalidatedJwtPayload('a.b').sub", 22],
  ["base64.decode('a=b')", 14],
  ["base64Decode('%')", 13],
  ["url.decode('%zz')", 11],
  ["int('1.5') == 1", 4],
  ["int('9223372036854775808') == 1", 4],
  ["uint('-1') == 1u", 5],
  ["double('1,5') == 1.5", 7],
  ["bool('yes')", 5],
  [String.raw`string(b'\xff')`, 7],
  ["request.startTime.getHours('Mars/Olympus') == 1", 27],
  ["'%q'.format([1])", 0],
  ["quantity('1 Gi').sign() == 1", 9, RULE_ENVIRONMENT],
  ["quantity('').sign() == 1", 9, RULE_ENVIRONMENT],
  ["url('a b').getHost() == ''", 4, RULE_ENVIRONMENT],
  ["self.find('(') == ''", 10, RULE_ENVIRONMENT],
  ["self.findAll('(') == []", 13, RULE_ENVIRONMENT],
  ["self.findAll('(', 2) == []", 13, RULE_ENVIRONMENT],
];

for (const [source, position, environment = REQUEST_ENVIRONMENT] of NEVER_PARSED) {
  test(`${source} is refused at its argument`, () => {
    assert.throws(
      () => parseExpression(source, environment),
      (error) => {
        assert.ok(error instanceof CelError);
        assert.match(error.message, /never accepts its argument/);
        assert.equal(error.position, position);
        return true;
      },
    );
  });
}

test("constants that can be parsed, and arguments that are no constants, are not refused", () => {
  for (const source of [
    "request.path.matches('^/a/[0-9]+$')",
    "request.path.matches(request.headers['x-pattern'])",
    "duration('1h30m') + duration(60) > duration(jwt.age)",
    "timestamp('2024-02-29T00:00:00Z') < request.startTime",
    "timestamp(0) < request.startTime",
    "cidr('10.0.0.0/8').containsIP(source.address) || cidr('fd00::/8').containsIP('::ffff:10.0.0.1')",
    "json('{\"a\": [1]}').a[0] == 1",
    "request.startTime.getHours('Europe/Berlin') == 1 || request.startTime.getHours('+02:00') == 1",
    "'%s %d %.2f %e %b %o %x %X 100%%'.format([1, 2, 3.0, 4.0, 5, 6, 7, 8]) != ''",
    "int('42') == 42 && bool('true') && double('1e3') == 1000.0",
  ])
    assert.doesNotThrow(() => parseExpression(source, REQUEST_ENVIRONMENT), source);
});

for (const [source, position, message] of REFUSED) {
  test(`${source} is refused before it runs`, () => {
    assert.throws(
      () => parseExpression(source, REQUEST_ENVIRONMENT),
      (error) => {
        assert.ok(error instanceof CelError);
        assert.match(error.message, message);
        assert.equal(error.position, position);
        return true;
      },
    );
  });
}

/** What may succeed is accepted: the types of tokens, headers and bodies are not known. */
const ACCEPTED: readonly (readonly [source: string, type: string])[] = [
  ["request.method == 'GET'", "bool"],
  ["request.host != null", "bool"],
  ["request.headers['x-a'] == 'b'", "bool"],
  ["request.headers.raw()['x-a'].exists(v, v == 'b')", "bool"],
  ["jwt.age + 1", "dyn"],
  ["jwt.ratio * 1.5 + jwt.count / 2", "dyn"],
  ["jwt.groups.exists(g, g == 'a' || g == 1)", "bool"],
  ["jwt.sub == 'a' ? 'b' : null", "dyn"],
  ["jwt.sub == 'a' ? 'b' : 1", "dyn"],
  ["1 == 1.0 && [1] == [1.0] && 1u in [1, 2]", "bool"],
  ["llm.inputTokens > 1.5", "bool"],
  ["'a' in request.path", "bool"],
  ["'x-a' in request.headers && 'sub' in jwt", "bool"],
  ["default(request.headers['x-a'], 'none')", "dyn"],
  ["default(request.host, 'none')", "string"],
  ["coalesce(request.host, null, 'none')", "dyn"],
  ["request.path.split('/').map(p, size(p))", "list<int>"],
  ["{'a': 1, 'b': 2}.filterKeys(k, k == 'a')", "map<string, int>"],
  ["{'a': 1}.merge({'b': 'x'})", "map<dyn, dyn>"],
  ["response.code / 100", "int"],
  ["llm.params.temperature * 2.0", "double"],
  ["request.endTime - request.startTime < duration('1s')", "bool"],
  ["size(request.path).with(n, n * n)", "int"],
  ["variables()", "map<string, dyn>"],
  ["cidr('10.0.0.0/8').containsIP(source.address)", "bool"],
  ["type(jwt.sub) == string", "bool"],
  ["optional.of(1).orValue(2)", "int"],
  ["source", "source"],
];

for (const [source, type] of ACCEPTED) {
  test(`${source} has the type ${type}`, () => {
    assert.equal(parseExpression(source, REQUEST_ENVIRONMENT).type, type);
  });
}

test("a field that comes later is refused with its path, where its place does not have it yet", () => {
  assert.throws(
    () => parseExpression("request.endTime", environmentOf("request")),
    /unknown variable "request.endTime"/,
  );
});

test("rules know nothing of self, and take everything", () => {
  assert.equal(parseExpression("self.a.b[0] == oldSelf.c", RULE_ENVIRONMENT).type, "bool");
  assert.throws(
    () => parseExpression("self.a.startsWith(1)", RULE_ENVIRONMENT),
    /takes \(string, string\), not \(dyn, int\)/,
  );
});

test("a number that is declared as a double is one, however JSON wrote it", () => {
  const llm = { params: { temperature: 1 } };
  assert.equal(evaluate("llm.params.temperature * 2.0", { llm }), 2);
  assert.equal(evaluate("type(llm.params.temperature) == double", { llm }), true);
  assert.equal(evaluate("llm.params.temperature / 2.0", { llm }), 0.5);
});

test("checking takes time in proportion to the expression, whatever its types look like", () => {
  const doubled = `jwt.with(a, {'k': a})${".with(a, {'k': a, 'l': a})".repeat(120)}`;
  const wide = `[[${"1, 'a', 2u, ".repeat(1000)}[]]]`;
  const deep = `${"[".repeat(120)}${"]".repeat(120)} == ${"[".repeat(120)}1${"]".repeat(120)}`;
  for (const source of [doubled, wide, deep]) {
    assert.doesNotThrow(() => compileExpression(source, REQUEST_ENVIRONMENT));
  }
});

test("the door tells what is read without a running request", () => {
  const { reads } = compileExpression("request.body == b'' || jwt.sub == 'a'", REQUEST_ENVIRONMENT);
  assert.deepEqual([...reads.attributes].sort(), ["jwt.sub", "request.body"]);
  assert.equal(evaluate("jwt.sub", { jwt: { sub: "a" } }), "a");
  assert.equal(compileExpression("1", REQUEST_ENVIRONMENT).evaluate(scopeOf({})), 1n);
});

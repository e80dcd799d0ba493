import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { HostMap } from "../../../../src/proxy/router/host.ts";
import { hostOf } from "../../../../src/lib/network/request-target.ts";
import { isUnder, queryValue } from "../../../../src/proxy/router/match.ts";
import { compilePattern } from "../../../../src/proxy/router/pattern.ts";

test("a prefix holds whole segments only", () => {
  assert.ok(isUnder("/a", "/a"));
  assert.ok(isUnder("/a/", "/a"));
  assert.ok(isUnder("/a/b", "/a"));
  assert.ok(!isUnder("/ab", "/a"));
  assert.ok(isUnder("/", ""));
});

test("the first value of a query parameter counts, decoded", () => {
  assert.equal(queryValue("/p?a=1&a=2", "a"), "1");
  assert.equal(queryValue("/p?x=1&a%20b=c%2Bd+e", "a b"), "c+d e");
  assert.equal(queryValue("/p?a", "a"), "");
  assert.equal(queryValue("/p", "a"), undefined);
  assert.equal(queryValue("/p?b=a", "a"), undefined);
  assert.equal(queryValue("/p?a=%zz", "a"), "%zz");
});

test("a pattern covers the whole value and runs in linear time", () => {
  assert.ok(compilePattern("/a")("/a"));
  assert.ok(!compilePattern("/a")("/ab"));
  assert.ok(compilePattern("/a|/b")("/b"));
  assert.ok(!compilePattern("/a|/b")("/bc"));
  assert.ok(compilePattern("(?i)ABC")("abc"));
  assert.ok(!compilePattern("(a+)+$")(`${"a".repeat(5000)}b`));
  assert.throws(() => compilePattern("("), ConfigError);
});

test("a pattern covers the value in every way of writing it", () => {
  for (const [pattern, value, expected] of [
    ["a|ab", "ab", true],
    ["ab|a", "a", true],
    ["^a$", "a", true],
    ["a$b|.*", "x", true],
    [String.raw`\Qa.b`, "a.b", true],
    [String.raw`\Qa.b\E.`, "a.bc", true],
    [String.raw`\Qa.b`, "axb", false],
    ["(?i)/Caf\u00e9", "/CAF\u00c9", true],
    ["a.b", "a\nb", false],
    ["(?s)a.b", "a\nb", true],
    ["", "", true],
    ["(|a)", "b", false],
  ] as const)
    assert.equal(compilePattern(pattern)(value), expected, `${pattern} ${value}`);
});

test("copies that repetitions make are counted through groups, and a pattern with too many is a configuration error", () => {
  for (const pattern of [
    "/((.{1,10}){1,10}){1,10}b",
    "(a{10}b{90}){10}",
    "a{600}b{600}",
    `${"(".repeat(400)}a${"){2}".repeat(400)}`,
    "(?:[)]{30}){40}",
    String.raw`(\Q)\E{30}){40}`,
    "a".repeat(5000),
  ])
    assert.throws(() => compilePattern(pattern), ConfigError, pattern);
  for (const pattern of [
    "([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.){1,10}com",
    "[{30}]{40}[^]{2}]{900}",
    String.raw`\{30\}{40}`,
    String.raw`\Q{999}{999}\E`,
    "(a{10}b{80}){10}",
    "/a/.{1,1000}",
    "a{,5}",
  ])
    compilePattern(pattern);
});

test("a match that would take too long is an error, and no answer", () => {
  const test = compilePattern("[ab]*a[ab]{300}c");
  const long = [...randomBytes(8000)].map((byte) => (byte % 2 === 0 ? "a" : "b")).join("");
  assert.throws(
    () => test(long),
    (error) => error instanceof ProxyError && error.code === "match_costly" && error.status === 500,
  );
  assert.ok(test(`a${"b".repeat(300)}c`));
  assert.ok(!test("xyz"));
});

test("hosts go from the exact name over the longest wildcard to any", () => {
  const map = new HostMap<string>();
  map.set("", "any");
  map.set("*.example.com", "star");
  map.set("*.b.example.com", "longer");
  map.set("A.example.com", "exact");
  assert.equal(map.find("a.example.com"), "exact");
  assert.equal(map.find("x.example.com"), "star");
  assert.equal(map.find("x.y.example.com"), "star");
  assert.equal(map.find("x.b.example.com"), "longer");
  assert.equal(map.find("example.com"), "any");
  map.set("*.example.com", undefined);
  assert.equal(map.find("x.example.com"), "any");
});

test("the host of an authority has no port, no trailing dot and no capitals", () => {
  assert.equal(hostOf("Example.COM:80"), "example.com");
  assert.equal(hostOf("example.com.:80"), "example.com");
  assert.equal(hostOf("[::1]:80"), "[::1]");
  assert.equal(hostOf("[::1]"), "[::1]");
});

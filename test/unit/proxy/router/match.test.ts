import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { HostMap, hostOf } from "../../../../src/proxy/router/host.ts";
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

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSpiffeId, parseTrustDomain } from "../../../../src/proxy/spiffe/spiffe-id.ts";

test("an ID has a trust domain and a path", () => {
  const id = parseSpiffeId("spiffe://example.org/ns/shop/sa/cart");
  assert.deepEqual([id?.trustDomain, id?.path], ["example.org", "/ns/shop/sa/cart"]);
  assert.equal(parseSpiffeId("spiffe://example.org")?.path, "");
});

test("what could be read in two ways is no ID", () => {
  const bad = [
    "https://example.org/a",
    "spiffe://Example.org/a",
    "spiffe://example.org:80/a",
    "spiffe://user@example.org/a",
    "spiffe:///a",
    "spiffe://example.org/",
    "spiffe://example.org/a/",
    "spiffe://example.org//a",
    "spiffe://example.org/../a",
    "spiffe://example.org/a/.",
    "spiffe://example.org/%61",
    "spiffe://example.org/a?b",
    "spiffe://example.org/a#b",
    "spiffe://example.org/a\n",
    `spiffe://example.org/${"a".repeat(2048)}`,
  ];
  for (const text of bad) assert.equal(parseSpiffeId(text), undefined, text.slice(0, 40));
});

test("a trust domain is named by its ID or bare", () => {
  assert.equal(parseTrustDomain("spiffe://example.org"), "example.org");
  assert.equal(parseTrustDomain("example.org"), "example.org");
  assert.equal(parseTrustDomain("spiffe://example.org/a"), undefined);
});

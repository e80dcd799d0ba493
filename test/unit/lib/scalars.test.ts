import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "../../../src/lib/time/duration.ts";
import { clientNetwork } from "../../../src/lib/network/ip-bytes.ts";
import { parseByteSize, parseQuantity } from "../../../src/lib/quantity.ts";
import { closest, editDistance, suggestion } from "../../../src/lib/suggest.ts";

test("a duration is the sum of its groups, in any order", () => {
  const cases: Record<string, number> = {
    "1h30m": 5_400_000,
    "90m": 5_400_000,
    "0s": 0,
    "250ms": 250,
    "1m1m": 120_000,
    "1h1m1s1ms": 3_661_001,
    "5ms2h": 7_200_005,
  };
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text), ms, text);
});

test("what is no duration has no value", () => {
  for (const text of ["", "1", "-1s", "1.5s", "1us", "1d", "100000s", "1h1h1h1h1h", " 1s", "1S", "s"])
    assert.equal(parseDuration(text), undefined, text);
});

test("quantities are exact at every suffix", () => {
  const cases: Record<string, bigint> = {
    "1": 1_000_000_000n,
    "1.5": 1_500_000_000n,
    ".5": 500_000_000n,
    "5.": 5_000_000_000n,
    "100m": 100_000_000n,
    "1n": 1n,
    "0.1n": 1n,
    "3u": 3_000n,
    "1k": 1_000_000_000_000n,
    "1K": 1_000_000_000_000n,
    "1Ki": 1_024_000_000_000n,
    "1.5Gi": 1_610_612_736_000_000_000n,
    "1e3": 1_000_000_000_000n,
    "1E3": 1_000_000_000_000n,
    "1E": 10n ** 27n,
    "12e-1": 1_200_000_000n,
    "-2Mi": -2_097_152_000_000_000n,
    "+1": 1_000_000_000n,
    "9007199254740993": 9_007_199_254_740_993_000_000_000n,
  };
  for (const [text, scaled] of Object.entries(cases)) assert.equal(parseQuantity(text), scaled, text);
});

test("what is no quantity has no value", () => {
  for (const text of ["", ".", "1 Ki", "Ki", "1kk", "0x10", "1_000", "1Kb", "NaN", "--1", "1e999"])
    assert.equal(parseQuantity(text), undefined, text);
});

test("a size in bytes rounds fractions up and stays within its bounds", () => {
  assert.equal(parseByteSize("1500m"), 2);
  assert.equal(parseByteSize("64Ki"), 65_536);
  assert.equal(parseByteSize(4096), 4_096);
  assert.equal(parseByteSize("0"), 1);
  assert.equal(parseByteSize("-5"), 1);
  assert.equal(parseByteSize("1Ti"), 4_294_967_295);
  assert.equal(parseByteSize("lots"), undefined);
});

test("the distance of two words counts insertions, deletions, replacements and swaps", () => {
  assert.equal(editDistance("timeout", "timeouts"), 1);
  assert.equal(editDistance("retyr", "retry"), 1);
  assert.equal(editDistance("kitten", "sitting"), 3);
  assert.equal(editDistance("", "abc"), 3);
  assert.equal(editDistance("same", "same"), 0);
});

test("a suggestion is the nearest known word, and nothing when none is near", () => {
  const known = ["timeouts", "retry", "rateLimit", "authorization"];
  assert.equal(closest("timeout", known), "timeouts");
  assert.equal(closest("ratelimit", known), "rateLimit");
  assert.equal(suggestion("authorisation", known), "did you mean `authorization`?");
  assert.equal(suggestion("colour", known), "");
  assert.equal(closest("x".repeat(100_000), known), undefined);
});

test("an IPv4 address is a client of its own, and so is a /64 of IPv6", () => {
  assert.equal(clientNetwork("192.0.2.1"), "192.0.2.1");
  assert.equal(clientNetwork("::ffff:192.0.2.1"), "192.0.2.1");
  assert.equal(clientNetwork("::ffff:c000:201"), "192.0.2.1");
  assert.equal(clientNetwork("2001:db8:1:2::1"), clientNetwork("2001:DB8:1:2:ffff:0:0:9"));
  assert.equal(clientNetwork("fe80::1%eth0"), clientNetwork("fe80::2"));
  assert.notEqual(clientNetwork("2001:db8:1:2::1"), clientNetwork("2001:db8:1:3::1"));
  assert.notEqual(clientNetwork("::1"), clientNetwork("::ffff:0.0.0.1"));
  assert.equal(clientNetwork(""), "");
});

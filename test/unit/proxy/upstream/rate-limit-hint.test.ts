/** What an answer with status 429 says about when to come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { rateLimitHintMs } from "../../../../src/proxy/upstream/rate-limit-hint.ts";

const NOW = Date.parse("2026-03-01T00:00:00Z");

function hint(headers: Readonly<Record<string, string>>, status = 429): number | undefined {
  return rateLimitHintMs(status, HeaderList.of(headers), NOW);
}

test("every header is understood, and the first of the order that can be read counts", () => {
  assert.equal(hint({ "retry-after": "7" }), 7000);
  assert.equal(hint({ "retry-after": "Sun, 01 Mar 2026 00:00:30 GMT" }), 30_000);
  assert.equal(hint({ "retry-after-ms": "1500" }), 1500);
  assert.equal(hint({ "x-ratelimit-reset": "60" }), 60_000);
  assert.equal(hint({ "x-ratelimit-reset": String(NOW / 1000 + 90) }), 90_000);
  assert.equal(hint({ "x-ratelimit-reset-requests": "6m0s" }), 360_000);
  assert.equal(hint({ "x-ratelimit-reset-tokens": "1.5s" }), 1500);
  assert.equal(hint({ "x-ratelimit-reset-requests-day": "1h2m3s4ms" }), 3_723_004);
  assert.equal(hint({ "x-ratelimit-reset-tokens-minute": "12.5" }), 12_500);
  assert.equal(hint({ "x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "17ms" }), 17);
  assert.equal(hint({ "x-ratelimit-reset": "5", "retry-after-ms": "3", "retry-after": "2" }), 2000);
  assert.equal(hint({ "retry-after": "soon", "retry-after-ms": "250" }), 250);
});

test("other statuses, times that are over and what cannot be read give no hint", () => {
  assert.equal(hint({ "retry-after": "7" }, 503), undefined);
  assert.equal(hint({}), undefined);
  for (const value of ["0", "-5", "1e3", "", "Sat, 28 Feb 2026 00:00:00 GMT", "2026-03-02", "9".repeat(400)])
    assert.equal(hint({ "retry-after": value }), undefined, value);
  assert.equal(hint({ "x-ratelimit-reset": String(NOW / 1000 - 90) }), undefined);
  for (const value of ["0s", "6 m", "m", "1d", "9".repeat(60)])
    assert.equal(hint({ "x-ratelimit-reset-tokens": value }), undefined, value);
});

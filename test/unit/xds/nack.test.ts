import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Backoff } from "../../../src/xds/client/backoff.ts";
import { decodeRefusals, encodeRefusals } from "../../../src/xds/nack.ts";

test("refusals survive the wire whatever their texts are", () => {
  const refusals = fc.uniqueArray(fc.record({ key: fc.string({ minLength: 1 }), reason: fc.string() }), {
    minLength: 1,
    selector: ({ key }) => key,
  });
  fc.assert(
    fc.property(refusals, (entries) => {
      const refused = entries.map(({ key, reason }) => ({ type: "Policy" as const, key, reason }));
      const keys = refused.map(({ key }) => key);
      assert.deepEqual(decodeRefusals(encodeRefusals(refused), "Policy", [...keys, "another"]), refused);
    }),
  );
});

test("a name that the response did not carry is not taken from a refusal", () => {
  const message = encodeRefusals([
    { type: "Policy", key: "mine", reason: "bad" },
    { type: "Policy", key: "theirs", reason: "bad" },
    { type: "Backend", key: "mine", reason: "bad" },
  ]);
  assert.deepEqual(decodeRefusals(message, "Policy", ["mine", "fine"]), [
    { type: "Policy", key: "mine", reason: "bad" },
  ]);
});

test("waiting times double up to the limit, vary by at most half, and start again after a reset", () => {
  for (const [random, share] of [
    [0, 0.5],
    [0.5, 0.75],
  ] as const) {
    const backoff = new Backoff({ firstMs: 100, maxMs: 500, random: () => random });
    const waits = Array.from({ length: 5 }, () => backoff.next());
    assert.deepEqual(
      waits,
      [100, 200, 400, 500, 500].map((step) => step * share),
    );
    backoff.reset();
    assert.equal(backoff.next(), 100 * share);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeNack, encodeNack } from "../../../src/xds/nack.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

test("refusals survive the wire whatever their texts are", () => {
  const refusals = fc.uniqueArray(fc.record({ key: fc.string({ minLength: 1 }), reason: fc.string() }), {
    minLength: 1,
    selector: ({ key }) => key,
  });
  assertProperty(
    fc.property(refusals, (entries) => {
      const refused = entries.map(({ key, reason }) => ({ type: "Policy" as const, key, reason }));
      const keys = refused.map(({ key }) => key);
      assert.deepEqual(decodeNack(encodeNack(refused), "Policy", [...keys, "another"]), refused);
    }),
  );
});

test("a name that the response did not carry is not taken from a refusal", () => {
  const message = encodeNack([
    { type: "Policy", key: "mine", reason: "bad" },
    { type: "Policy", key: "theirs", reason: "bad" },
    { type: "Backend", key: "mine", reason: "bad" },
  ]);
  assert.deepEqual(decodeNack(message, "Policy", ["mine", "fine"]), [{ type: "Policy", key: "mine", reason: "bad" }]);
});

/** What the result of a sampling expression means, and the draw that replicas agree on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { drawOf, isSampled } from "../../../src/telemetry/sampling.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

const never = (): number => {
  throw new Error("nothing had to be drawn");
};

test("true and shares from 1 on are always, false and shares up to 0 never, without a draw", () => {
  for (const always of [true, 1, 1n, 7, Infinity]) assert.equal(isSampled(always, never), true);
  for (const nothing of [false, 0, 0n, -1, -1n, -Infinity, NaN]) assert.equal(isSampled(nothing, never), false);
});

test("of anything that is neither a bool nor a number nothing is traced", () => {
  for (const other of ["true", "1", null, undefined, [], new Map(), new Date(), {}])
    assert.equal(isSampled(other, never), false);
});

test("a share is what is drawn below it", () => {
  assert.equal(
    isSampled(0.25, () => 0.2499),
    true,
  );
  assert.equal(
    isSampled(0.25, () => 0.25),
    false,
  );
  assert.equal(
    isSampled(0.999, () => 1),
    false,
  );
});

test("the draw of a trace id comes from its low 56 bits alone", () => {
  assert.equal(drawOf(`${"f".repeat(18)}${"0".repeat(14)}`), 0);
  assert.equal(drawOf(`${"0".repeat(18)}80000000000000`), 0.5);
  assert.equal(
    isSampled(0.999_999, () => drawOf("f".repeat(32))),
    false,
  );
});

test("a larger share traces all that a smaller one does", () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const id = fc.array(fc.constantFrom(..."0123456789abcdef"), { minLength: 32, maxLength: 32 });
  assertProperty(
    fc.property(share, share, id, (a, b, digits) => {
      const draw = (): number => drawOf(digits.join(""));
      const [small, large] = a < b ? [a, b] : [b, a];
      assert.ok(!isSampled(small, draw) || isSampled(large, draw));
    }),
  );
});

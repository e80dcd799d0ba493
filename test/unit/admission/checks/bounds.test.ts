/** What is too large or too deep is refused before work in proportion to it: the tests count how far anyone looked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { boundsViolation } from "../../../../src/admission/checks/bounds.ts";
import { type JsonBounds, findJsonError } from "../../../../src/admission/json-bounds.ts";
import { validate } from "../../../../src/admission/validate.ts";

const BOUNDS: JsonBounds = { maxDepth: 100, maxValues: 1000, maxBytes: 10_000, measuredDepth: 2 };
const MIB = 1024 * 1024;

function fault(text: string): { message: string; offset: number } {
  const found = findJsonError(Buffer.from(text), BOUNDS);
  assert.ok(found !== undefined, "it was taken");
  return found;
}

test("10,000 levels are seen at the first one too many", () => {
  const deep = fault(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`);
  assert.equal(deep.message, "Too long: may not be nested deeper than 99 levels");
  assert.equal(deep.offset, 100 * '{"a":'.length);
  assert.equal(fault("[".repeat(3 * MIB)).offset, 100);
});

test("of 3 MiB of small values no more is looked at than the bound allows", () => {
  const many = fault(`{"o":{"a":[${"1,".repeat(MIB)}1]}}`);
  assert.equal(many.message, "Too long: may not hold more than 1000 values");
  assert.ok(many.offset < 2100, String(many.offset));
});

test("a long value is seen where it ends, and what comes before it is not counted", () => {
  const head = `{"x":"${"y".repeat(20_000)}","o":{"a":"`;
  assert.equal(findJsonError(Buffer.from(`${head}${"z".repeat(9_000)}"}}`), BOUNDS), undefined);
  assert.match(fault(`${head}${"z".repeat(10_000)}"}}`).message, /may not be more than 10000 bytes/);
});

test("brackets and commas inside texts are text, however the quotes are escaped", () => {
  const text = JSON.stringify({ a: '{[,"\\'.repeat(2_000).slice(0, 8_000), b: '\\\\"', c: "[[[" });
  assert.equal(findJsonError(Buffer.from(text), { ...BOUNDS, maxDepth: 1, maxValues: 4, measuredDepth: 9 }), undefined);
  assert.equal(findJsonError(Buffer.from('"unfinished\\"'), BOUNDS), undefined);
});

/** An object that counts how many of its members are read. */
function counted(members: number): { object: object; reads: () => number } {
  let reads = 0;
  const item = {
    get value(): string {
      reads++;
      return "0123456789".repeat(20);
    },
  };
  return { object: { list: Array.from({ length: members }, () => item) }, reads: () => reads };
}

test("an object of 100 MiB is left as soon as 2 MiB of it were seen", () => {
  const { object, reads } = counted(500_000);
  assert.match(boundsViolation(object)?.message ?? "", /^Too long: may not/);
  assert.ok(reads() <= 11_000, `${reads()} members were read`);
});

test("an object nested 10,000 deep is refused by the validator without recursion", () => {
  let deep: unknown = "end";
  for (let level = 0; level < 10_000; level++) deep = { a: deep };
  const found = validate({ apiVersion: "gwproxy.dev/v1alpha1", kind: "GwPolicy", metadata: { name: "a" }, spec: deep });
  assert.deepEqual(
    found.map(({ message }) => message),
    ["Too long: may not be nested deeper than 100 levels"],
  );
});

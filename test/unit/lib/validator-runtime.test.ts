/** What the generated validators import: lengths in code points, and items that repeat. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { codePointLength } from "../../../src/lib/code-point-length.ts";
import { duplicateItems } from "../../../src/lib/duplicate-items.ts";

test("a pair of surrogates is one code point, and half a pair is one as well", () => {
  assert.deepEqual(["", "aé", "😀😀", "\ud83d", "\ud83da", "\ude00\ud83d"].map(codePointLength), [0, 2, 2, 1, 2, 2]);
});

test("an item repeats another when all its keys are equal", () => {
  const items = [{ a: 1, b: 1 }, { a: 1, b: 2 }, { b: 1, a: 1, c: 3 }, { a: 1 }, { a: 1 }, "text", null];
  assert.deepEqual(duplicateItems(items, ["a", "b"]), [{ index: 2, key: { a: 1, b: 1 } }]);
});

test("without keys the item itself is compared, and 1 is not the text 1", () => {
  assert.deepEqual(duplicateItems(["x", 1, "1", "x", "x"], []), [
    { index: 3, key: "x" },
    { index: 4, key: "x" },
  ]);
});

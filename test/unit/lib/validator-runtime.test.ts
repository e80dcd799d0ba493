/** What the generated validators import: lengths in code points, and items that repeat. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { codePointLength } from "../../../src/lib/code-point-length.ts";
import { findListErrors } from "../../../src/lib/list-errors.ts";
import { quote } from "../../../src/lib/quote.ts";

test("a pair of surrogates is one code point, and half a pair is one as well", () => {
  assert.deepEqual(["", "aé", "😀😀", "\ud83d", "\ud83da", "\ude00\ud83d"].map(codePointLength), [0, 2, 2, 1, 2, 2]);
});

test("an item repeats another when all its keys are equal, and each repetition is named once", () => {
  const items = [{ a: 1, b: 1 }, { a: 1, b: 2 }, { b: 1, a: 1, c: 3 }, { a: 1 }, { a: 1 }, { a: 1, b: 1 }];
  assert.deepEqual(findListErrors(items, ["a", "b"]), [
    { index: 2, kind: "duplicate", key: { a: 1, b: 1 } },
    { index: 4, kind: "duplicate", key: { a: 1 } },
  ]);
});

test("what has no members cannot have keys, and the first of it hides what repeats", () => {
  assert.deepEqual(findListErrors([{ a: 1 }, { a: 1 }, 7, [1]], ["a"]), [{ index: 2, kind: "notObject", key: 7 }]);
});

test("null has no keys, and repeats what has none either", () => {
  assert.deepEqual(findListErrors([null, { b: 1 }, null], ["a"]), [{ index: 1, kind: "duplicate", key: {} }]);
});

test("without keys the item itself is compared, and 1 is not the text 1", () => {
  assert.deepEqual(findListErrors(["x", 1, "1", "x", "x"], []), [{ index: 3, kind: "duplicate", key: "x" }]);
});

test("quotes escape what Go does not print and leave letters and symbols of all languages", () => {
  assert.equal(quote('a"b\\c\n\u0000\u007f'), '"a\\"b\\\\c\\n\\x00\\x7f"');
  assert.equal(quote("é😀 \u00a0\u200b\u{e0001}"), '"é😀 \\u00a0\\u200b\\U000e0001"');
});

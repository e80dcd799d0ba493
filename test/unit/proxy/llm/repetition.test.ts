/** The shortcut for events that repeat the one before but for their text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Repetition } from "../../../../src/proxy/llm/stream/repetition.ts";

/** Returns what is found in an event after another one with the text "first". */
function foundAfter(first: object, second: object | string): string | undefined {
  const repetition = new Repetition();
  repetition.learn("first", JSON.stringify(first));
  return repetition.find(typeof second === "string" ? second : JSON.stringify(second));
}

const EVENT = { index: 0, delta: { text: "first" }, end: null };

test("the text is found where only it differs", () => {
  const texts: [text: string, found: boolean][] = [
    [" second", true],
    ["first", true],
    ["}", true],
    ["", false],
    ['a"b', false],
    ["a\\b", false],
    ["a\nb", false],
    ["ü", false],
  ];
  for (const [text, found] of texts) {
    const event = Buffer.from(JSON.stringify({ ...EVENT, delta: { text } })).toString("latin1");
    assert.equal(foundAfter(EVENT, event), found ? JSON.stringify(text) : undefined, text);
  }
  const others: (object | string)[] = [
    { ...EVENT, index: 1 },
    { ...EVENT, end: "stop" },
    { ...EVENT, delta: { text: "a", more: 1 } },
    { ...EVENT, delta: { text: 1 } },
    { ...EVENT, more: 1 },
    JSON.stringify(EVENT).slice(0, -1),
    `${JSON.stringify(EVENT)} `,
    "",
    '"',
    "[DONE]",
  ];
  for (const other of others) assert.equal(foundAfter(EVENT, other), undefined, JSON.stringify(other));
});

test("random letters that hide the length of a text may differ, at the end alone", () => {
  for (const name of ["obfuscation", "p"]) {
    const padded = { ...EVENT, [name]: "abcXYZ019" };
    const same: object[] = [
      { ...EVENT, delta: { text: "b" }, [name]: "q" },
      { ...EVENT, delta: { text: "b" }, [name]: "" },
    ];
    for (const event of same) assert.equal(foundAfter(padded, event), '"b"', JSON.stringify(event));
    const others: (object | string)[] = [
      EVENT,
      { ...padded, end: 1 },
      { ...padded, [name]: "a-b" },
      { ...padded, [name]: 'a"b' },
      { ...padded, [name]: "a\\b" },
      { ...padded, [name]: 1 },
      { ...padded, more: 1 },
      { ...padded, [name]: { [name]: "a" } },
      { [name]: "abc", ...EVENT },
      { ...EVENT, other: "abc" },
      `${JSON.stringify(padded)}}`,
      JSON.stringify(padded).slice(0, -1),
      JSON.stringify(padded).slice(0, -2),
    ];
    for (const other of others) assert.equal(foundAfter(padded, other), undefined, JSON.stringify(other));
    assert.equal(foundAfter(EVENT, padded), undefined, "an event without the letters was learned");
    const nested = { index: 0, delta: { text: "first", [name]: "abc" } };
    assert.equal(foundAfter(nested, { index: 0, delta: { text: "b", [name]: "abc" } }), '"b"');
    assert.equal(foundAfter(nested, { index: 0, delta: { text: "b", [name]: "x" } }), undefined);
  }
});

test("an event is found under the type of the one before alone, and nothing after one that was something else", () => {
  const repetition = new Repetition();
  repetition.learn("first", JSON.stringify(EVENT), "a");
  assert.equal(repetition.find(JSON.stringify(EVENT), "a"), '"first"');
  assert.equal(repetition.find(JSON.stringify(EVENT), "b"), undefined);
  repetition.learn(undefined, "{}", "a");
  assert.equal(repetition.find(JSON.stringify(EVENT), "a"), undefined);
});

/** Printing of request bodies: the same bytes, whether in one text or in pieces. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { printJson } from "../../../../src/proxy/llm/shared/print-json.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const LARGE = 100_000;
const MARK = "gw1:";
const options = (sizeHint: number) => ({ sizeHint, test: (text: string) => text.includes(MARK) });

function assertPrinted(object: JsonObject, sizeHint: number): void {
  const text = JSON.stringify(object);
  const { bytes, hasMatch } = printJson(object, options(sizeHint));
  assert.equal(bytes.toString(), Buffer.from(text).toString());
  assert.equal(hasMatch, text.includes(MARK));
}

test("any object is printed as JSON.stringify prints it, whatever its size is thought to be", () => {
  const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom(MARK, `a${MARK}b`, "\ud800", "ü"));
  const value = fc.oneof(text, fc.array(fc.jsonValue()), fc.jsonValue(), fc.constant(undefined));
  const object = fc.dictionary(text, value).map((members) => members as JsonObject);
  assertProperty(
    fc.property(object, fc.constantFrom(0, LARGE, 40 * LARGE), (printed, sizeHint) => assertPrinted(printed, sizeHint)),
  );
});

test("large bodies are printed whole: many items, few long ones, one text, and more than fits into the memory", () => {
  const long = (length: number): string => "aü€".repeat(length / 3);
  const bodies: JsonObject[] = [
    { model: "m", messages: Array.from({ length: 20_000 }, (_, at) => at), temperature: 1 },
    { model: "m", tools: Array.from({ length: 40 }, (_, at) => ({ name: `tool_${at}`, description: long(6_000) })) },
    { input: [{ text: long(LARGE) }, long(3 * LARGE), { text: MARK }], other: null },
    { input: long(2_000_000), last: MARK },
    { first: long(1_000_000), input: [long(1_000_000), long(1_000_000)] },
  ];
  for (const body of bodies) assertPrinted(body, JSON.stringify(body).length);
});

test("a body keeps its bytes when the next one is printed", () => {
  const first = printJson({ list: ["first", "second"] }, options(LARGE)).bytes;
  printJson({ list: ["other", "others"] }, options(LARGE));
  assert.equal(first.toString(), '{"list":["first","second"]}');
});

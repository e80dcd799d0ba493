/** Which traceparent headers are believed, what is sent on, and ids that no two spans share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { newSpanId, newTraceId, parseTraceparent, printTraceparent } from "../../../src/telemetry/trace-context.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const GOOD = `00-${TRACE}-${SPAN}-01`;

const INVALID: readonly (readonly [why: string, value: string])[] = [
  ["nothing", ""],
  ["version ff", GOOD.replace(/^00/, "ff")],
  ["a version of one digit", GOOD.slice(1)],
  ["a version that is no number", GOOD.replace(/^00/, "0x")],
  ["a trace id of zeros", GOOD.replace(TRACE, "0".repeat(32))],
  ["a span id of zeros", GOOD.replace(SPAN, "0".repeat(16))],
  ["a short trace id", GOOD.replace(TRACE, TRACE.slice(1))],
  ["a long trace id", GOOD.replace(TRACE, `${TRACE}0`)],
  ["a short span id", GOOD.replace(SPAN, SPAN.slice(1))],
  ["capital letters", GOOD.toUpperCase()],
  ["letters that are no digits", GOOD.replace("0af7", "0ag7")],
  ["no flags", GOOD.slice(0, -3)],
  ["flags of one digit", GOOD.slice(0, -1)],
  ["flags that are no number", GOOD.replace(/01$/, "0x")],
  ["a space in front", ` ${GOOD}`],
  ["a space behind", `${GOOD} `],
  ["version 00 with more", `${GOOD}-00`],
  ["version 00 with a dash", `${GOOD}-`],
  ["a later version that goes on without a dash", `${GOOD.replace(/^00/, "01")}0`],
  ["dashes elsewhere", GOOD.replaceAll("-", "_")],
  ["two in one", `${GOOD},${GOOD}`],
  ["a line break", `${GOOD}\n`],
];

test("a traceparent of version 00 is read", () => {
  assert.deepEqual(parseTraceparent([GOOD]), { traceId: TRACE, spanId: SPAN, flags: 1 });
  assert.equal(parseTraceparent([GOOD.replace(/01$/, "00")])?.flags, 0);
});

test("a later version is read by its first four members, however it goes on", () => {
  for (const version of ["01", "cc", "fe"]) {
    for (const more of ["", "-", "-what-the-future-brings"])
      assert.deepEqual(parseTraceparent([`${version}${GOOD.slice(2)}${more}`]), {
        traceId: TRACE,
        spanId: SPAN,
        flags: 1,
      });
  }
});

test("flags that nobody knows yet are not sent on", () => {
  assert.equal(parseTraceparent([GOOD.replace(/01$/, "ff")])?.flags, 3);
  assert.equal(printTraceparent({ traceId: TRACE, spanId: SPAN, flags: 0xff }), GOOD.replace(/01$/, "03"));
});

for (const [why, value] of INVALID)
  test(`${why} is no traceparent`, () => assert.equal(parseTraceparent([value]), undefined));

test("two traceparent fields name no parent, even when they agree", () => {
  assert.equal(parseTraceparent([GOOD, GOOD]), undefined);
  assert.equal(parseTraceparent([]), undefined);
});

const digits = (length: number): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
    .map((all) => all.join(""))
    .filter((text) => /[^0]/.test(text));

test("what is printed is read again as it was", () => {
  const parents = fc.record({ traceId: digits(32), spanId: digits(16), flags: fc.integer({ min: 0, max: 3 }) });
  assertProperty(
    fc.property(parents, (parent) => {
      assert.deepEqual(parseTraceparent([printTraceparent(parent)]), { ...parent });
    }),
  );
});

test("a changed character never leads to another trace of the same header", () => {
  const changes = fc.tuple(fc.nat({ max: GOOD.length - 1 }), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }));
  assertProperty(
    fc.property(changes, ([at, character]) => {
      const text = GOOD.slice(0, at) + character + GOOD.slice(at + 1);
      const parent = parseTraceparent([text]);
      if (parent === undefined) return;
      assert.match(text, /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/);
      assert.equal(text.slice(3, 35), parent.traceId);
      assert.equal(text.slice(36, 52), parent.spanId);
    }),
    { numRuns: 2_000 },
  );
});

test("any text is read or refused, and never throws", () => {
  assertProperty(
    fc.property(fc.string({ unit: "binary", maxLength: 80 }), (text) => {
      const parent = parseTraceparent([text]);
      assert.ok(parent === undefined || /^[0-9a-f]{32}$/.test(parent.traceId));
    }),
  );
});

test("ids have their length, are not zero, and are all different", () => {
  const traces = new Set(Array.from({ length: 10_000 }, newTraceId));
  const spans = new Set(Array.from({ length: 10_000 }, newSpanId));
  assert.equal(traces.size, 10_000);
  assert.equal(spans.size, 10_000);
  for (const id of traces) assert.match(id, /^(?!0{32})[0-9a-f]{32}$/);
  for (const id of spans) assert.match(id, /^(?!0{16})[0-9a-f]{16}$/);
});

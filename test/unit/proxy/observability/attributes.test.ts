import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ReportAttributesSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../../../src/cel/values.ts";
import { compileAttributes } from "../../../../src/proxy/observability/attributes.ts";
import { queryOf } from "../../../../src/proxy/observability/query.ts";
import type { AttributeValue } from "../../../../src/telemetry/attributes.ts";
import { makeDeps } from "../../../support/gateway/exchange.ts";

/** @param add expressions by name @param jwt what the root of that name holds */
function evaluate(add: Readonly<Record<string, string>>, jwt: object = {}): Record<string, AttributeValue> {
  const named = Object.entries(add).map(([name, expression]) => ({ name, expression }));
  const { added } = compileAttributes(create(ReportAttributesSchema, { add: named }), (source) =>
    makeDeps().expression(source, "log"),
  );
  return Object.fromEntries(added?.({ root: (name) => (name === "jwt" ? jwt : undefined) }) ?? []);
}

test("integers are bigints and other numbers doubles, in lists and maps too", () => {
  const values = evaluate({ int: "1", double: "1.0", uint: "3u", list: "[1, 1.0]", claim: "jwt.n" }, { n: 5 });
  assert.deepEqual(values, { int: 1n, double: 1, uint: 3n, list: [1n, 1], claim: 5n });
});

test("what has no number, bytes and times are text", () => {
  const values = evaluate({
    nan: "0.0 / 0.0",
    text: 'b"plain \\xc3\\xa9"',
    bytes: 'b"\\xff\\x00"',
    duration: 'duration("1500ms")',
  });
  assert.deepEqual(values, { nan: "NaN", text: "plain é", bytes: "/wA=", duration: "1.5s" });
});

test("a credential stays hidden wherever it stands", () => {
  const values = evaluate({ all: "jwt", flat: "flatten(jwt)", one: "jwt.rawToken" }, { rawToken: new Secret("abc") });
  assert.deepEqual(values, {
    all: new Map([["rawToken", "<redacted>"]]),
    "flat.rawToken": "<redacted>",
    one: "<redacted>",
  });
});

test("a map of a client's may hold any key", () => {
  const { all } = evaluate({ all: "jwt" }, JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as object);
  assert.deepEqual(
    all,
    new Map<string, unknown>([
      ["__proto__", new Map([["polluted", true]])],
      ["constructor", 1n],
    ]),
  );
});

test("of two pairs with one name the later one stands, and of a wide map only so many", () => {
  assert.deepEqual(evaluate({ "jwt.a": '"first"', jwt: "flatten(jwt)" }, { a: "second" }), { "jwt.a": "second" });
  const wide = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`k${at}`, at]));
  assert.equal(Object.keys(evaluate({ jwt: "flatten(jwt)" }, wide)).length, 1_024);
});

test("text is cut between characters, and all values of a report have a bound together", () => {
  const { long } = evaluate({ long: "jwt.text" }, { text: `a${"😀".repeat(50_000)}` });
  assert.ok(typeof long === "string" && long.endsWith("😀…") && long.length <= 65_537);
  const texts = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`t${at}`, "jwt.text"]));
  const values = evaluate(texts, { text: "x".repeat(60_000) });
  assert.equal(Object.keys(values).length, 17);
});

test("data that nest too deeply lose what lies deeper", () => {
  let deep: unknown = "bottom";
  for (let level = 0; level < 60; level++) deep = [deep];
  let { value } = evaluate({ value: "jwt.deep" }, { deep });
  let depth = 0;
  while (Array.isArray(value)) {
    value = value[0] as AttributeValue;
    depth++;
  }
  assert.deepEqual([depth, value], [32, null]);
});

test("a query keeps the names of parameters that carry secrets, and hides their values", () => {
  assert.equal(queryOf("/path"), undefined);
  assert.equal(queryOf("/path?"), undefined);
  assert.equal(queryOf("/?a=1&Access_Token=x&b"), "a=1&Access_Token=REDACTED&b");
  assert.equal(queryOf("/?access%5Ftoken=x&api%2Dkey=y%zz&%zz=1"), "access%5Ftoken=REDACTED&api%2Dkey=REDACTED&%zz=1");
  assert.equal(queryOf("/?ticket=abc&ticket=def&x=1", new Set(["ticket"])), "ticket=REDACTED&ticket=REDACTED&x=1");
});

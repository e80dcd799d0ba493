/** Lowering, expansion and budget: what our keywords become in a CRD. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { trimDescriptions } from "../../../codegen/budget.ts";
import { expand } from "../../../codegen/expand.ts";
import { createGraph } from "../../../codegen/graph.ts";
import { readSchemas } from "../../../codegen/load.ts";
import { celRules, lowered } from "../../../codegen/lower.ts";
import { walk, type Schema } from "../../../codegen/schema.ts";
import { compact, slim } from "../../../codegen/slim.ts";

const A_AND_B: Schema = { type: "object", properties: { a: { type: "integer" }, namespace: { type: "integer" } } };

test("the family of one-of becomes one rule each, with a message that names the fields", () => {
  const rules = celRules({ ...A_AND_B, "x-gw-exactly-one-of": ["a", "namespace"], "x-gw-at-least-one-of": ["a"] });
  assert.deepEqual(rules, [
    {
      rule: "has(self.a) != has(self.__namespace__)",
      message: "exactly one of the fields in [a namespace] must be set",
    },
    {
      rule: "has(self.a)",
      message: "at least one of the fields in [a] must be set",
    },
  ]);
});

test("a rule of the family takes the shortest form for its number of fields", () => {
  const properties = { a: {}, b: {}, c: {} };
  const ruleOf = (schema: Schema): string | undefined => celRules({ type: "object", properties, ...schema })[0]?.rule;
  const list = "[has(self.a), has(self.b), has(self.c)].filter(x, x).size()";
  assert.equal(ruleOf({ "x-gw-exactly-one-of": ["a"] }), "has(self.a)");
  assert.equal(ruleOf({ "x-gw-exactly-one-of": ["a", "b", "c"] }), `${list} == 1`);
  assert.equal(ruleOf({ "x-gw-at-most-one-of": ["a", "b"] }), "!has(self.a) || !has(self.b)");
  assert.equal(ruleOf({ "x-gw-at-most-one-of": ["a", "b", "c"] }), `${list} <= 1`);
  assert.equal(ruleOf({ "x-gw-at-least-one-of": ["a", "b", "c"] }), "has(self.a) || has(self.b) || has(self.c)");
});

test("x-gw-if shuts out every field that it does not name, each with a message of its own", () => {
  const schema: Schema = {
    type: "object",
    "x-gw-if": { when: { phase: "Early" }, "then-only": ["a"] },
    properties: { phase: { type: "string" }, a: { type: "integer" }, b: { type: "integer" } },
  };
  assert.deepEqual(celRules(schema), [
    {
      rule: "!has(self.b) || !has(self.phase) || self.phase != 'Early'",
      message: "b may not be set when phase is Early",
      fieldPath: ".b",
    },
  ]);
});

test("a CRD says nothing that goes without saying, and keeps every character of a text", () => {
  assert.equal(compact("!(has(self.a) && self.b in ['x  y', \"( \"])"), "!(has(self.a)&&self.b in['x  y',\"( \"])");
  assert.equal(compact("'a'  in self ?\n  self.c == 'it\\\\' s' : true"), "'a' in self?self.c=='it\\\\' s':true");
  const list: Schema = { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "atomic" };
  const port: Schema = { type: "integer", format: "int32", minimum: 1, maximum: 65_535 };
  assert.deepEqual(slim(list), { type: "array", items: { type: "string" } });
  assert.deepEqual(slim(port), { type: "integer", minimum: 1, maximum: 65_535 });
  assert.deepEqual(slim({ type: "integer", format: "int32", minimum: 1 }), {
    type: "integer",
    format: "int32",
    minimum: 1,
  });
});

test("x-gw-immutable becomes a rule about changes", () => {
  assert.deepEqual(celRules({ type: "string", "x-gw-immutable": true }), [
    { rule: "self == oldSelf", message: "the value may not change" },
  ]);
});

test("no keyword of ours and no reference reaches a CRD", () => {
  const { components } = readSchemas(
    new Map([
      ["kinds", "group: example.dev\nversion: v1\nkinds: []\n"],
      [
        "a",
        `
D: {type: string, x-gw-format: duration, x-gw-default: none, description: of the component}
A: {type: object, x-gw-at-least-one-of: [b], properties: {b: {$ref: D, description: of the use}, c: {$ref: D}}}
`,
      ],
    ]),
  );
  const graph = createGraph(components);
  const tree = expand(graph, graph.get("A").schema);
  for (const [, schema] of walk(tree)) {
    assert.deepEqual(
      Object.keys(schema).filter((keyword) => keyword.startsWith("x-gw-") || keyword === "$ref"),
      [],
    );
  }
  assert.equal(tree.properties?.["b"]?.description, "of the use");
  assert.equal(tree.properties?.["c"]?.description, "of the component");
  assert.equal(tree.properties?.["b"]?.maxLength, 32, "the format brings its bounds");
  assert.equal(tree["x-kubernetes-validations"]?.length, 1);
});

test("bounds of the schema itself win over those of its format", () => {
  assert.equal(lowered({ type: "string", "x-gw-format": "hostname", maxLength: 63 }).maxLength, 63);
});

function nested(depth: number, text: string): Schema {
  if (depth === 0) return { type: "string", description: text };
  return { type: "object", description: text, properties: { next: nested(depth - 1, text) } };
}

test("descriptions are trimmed by depth: full, then first sentences, then none", () => {
  const schema = nested(6, "First sentence. Second sentence.");
  const counts = (limit: number): number[] => {
    const { schema: trimmed, kept, shortened, dropped } = trimDescriptions("X", schema, 0, limit);
    assert.ok(Buffer.byteLength(JSON.stringify(trimmed)) <= limit);
    return [kept, shortened, dropped];
  };
  const all = Buffer.byteLength(JSON.stringify(schema));
  assert.deepEqual(counts(all), [7, 0, 0]);
  assert.deepEqual(counts(all - 1), [6, 1, 0]);
  const rest = " Second sentence.".length;
  assert.deepEqual(counts(all - 3 * rest), [4, 3, 0]);
  // The deepest text is dropped, and its bytes are enough for a second sentence above it.
  assert.deepEqual(counts(all - 3 * rest - 1), [5, 1, 1]);
  const deep = '"description":"First sentence.",'.length;
  assert.deepEqual(counts(all - 3 * rest - 3 * deep), [4, 0, 3]);
  assert.deepEqual(counts(all - 3 * rest - 3 * deep - 1), [3, 1, 3]);
  // The third level may go as well; without the first two there is no CRD.
  assert.deepEqual(counts(all - 7 * rest - 4 * deep), [0, 3, 4]);
  assert.throws(() => counts(all - 7 * rest - 4 * deep - 1), /1 bytes over the limit/);
});

test("a CRD whose first levels of fields cannot be described stops the build", () => {
  assert.throws(
    () => trimDescriptions("X", nested(6, "First sentence. Second sentence."), 0, 300),
    /^Error: X: the CRD is \d+ bytes over the limit of 300/,
  );
});

/** A CRD that takes less than the last one is named with its place; one that takes more is not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { breaks, parseBaseline, printBaseline, type Roots } from "../../../codegen/compatibility.ts";
import type { CelRule, Schema } from "../../../codegen/schema.ts";

const SPEC: Schema = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 8, pattern: "^a" },
    port: { type: "integer", format: "int32", minimum: 1, maximum: 9 },
    mode: { type: "string", enum: ["A", "B"], default: "A" },
    list: {
      type: "array",
      minItems: 1,
      maxItems: 4,
      "x-kubernetes-list-type": "atomic",
      items: { type: "string", maxLength: 3 },
    },
    map: { type: "object", maxProperties: 4, additionalProperties: { type: "string", maxLength: 3 } },
    any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    none: { type: "string", maxLength: 3, nullable: true },
  },
  "x-kubernetes-validations": [
    { rule: "!has(self.port) || self.port != 2", message: "two is taken" },
    { rule: "has(self.list) != has(self.map)", message: "one of them" },
    { rule: "!has(self.any) || !has(self.none)" },
  ],
};

function withRules(...rules: CelRule[]): Schema {
  return { ...SPEC, "x-kubernetes-validations": [...(SPEC["x-kubernetes-validations"] ?? []), ...rules] };
}

const OTHER: Readonly<Record<string, Schema>> = { ...SPEC.properties, other: { type: "string" } };
const COUNT_OF_THREE: CelRule = { rule: "[has(self.list), has(self.map), has(self.other)].filter(x, x).size() == 1" };

function rootsOf(spec: Schema): Roots {
  return new Map([["Kind", { type: "object", properties: { spec } }]]);
}

function withField(name: string, change: Schema): Schema {
  return { ...SPEC, properties: { ...SPEC.properties, [name]: { ...SPEC.properties?.[name], ...change } } };
}

function without(name: string, key: keyof Schema): Schema {
  const { [key]: _, ...field } = SPEC.properties?.[name] ?? {};
  return { ...SPEC, properties: { ...SPEC.properties, [name]: field } };
}

function found(spec: Schema): string[] {
  return breaks(parseBaseline(printBaseline(rootsOf(SPEC))), rootsOf(spec));
}

const { port: _, ...WITHOUT_PORT } = SPEC.properties ?? {};

const BREAKS: readonly (readonly [what: string, spec: Schema, fault: string])[] = [
  ["a field that is gone", { ...SPEC, properties: WITHOUT_PORT }, "Kind spec.port: the field is gone"],
  ["an upper bound that fell", withField("name", { maxLength: 7 }), "Kind spec.name: maxLength was 8 and is 7"],
  ["a lower bound that rose", withField("list", { minItems: 2 }), "Kind spec.list: minItems was 1 and is 2"],
  ["a largest number that fell", withField("port", { maximum: 8 }), "Kind spec.port: maximum was 9 and is 8"],
  ["a bound where there was none", withField("any", { maxProperties: 3 }), "Kind spec.any: maxProperties is new: 3"],
  [
    "a bound of the items of a list",
    withField("list", { items: { type: "string", maxLength: 2 } }),
    "Kind spec.list[]: maxLength was 3 and is 2",
  ],
  [
    "a bound of the values of a map",
    withField("map", { additionalProperties: { type: "string", maxLength: 2 } }),
    "Kind spec.map{}: maxLength was 3 and is 2",
  ],
  ["a field that is required now", { ...SPEC, required: ["name", "port"] }, "Kind spec: port is required now"],
  ["a value that is gone", withField("mode", { enum: ["A"] }), 'Kind spec.mode: the value "B" is gone'],
  [
    "values that are listed now",
    withField("name", { enum: ["a"] }),
    "Kind spec.name: only listed values are taken now",
  ],
  ["a pattern that changed", withField("name", { pattern: "^b" }), 'Kind spec.name: pattern was "^a" and is "^b"'],
  [
    "a pattern where there was none",
    withField("none", { pattern: "^b" }),
    'Kind spec.none: pattern was none and is "^b"',
  ],
  ["another type", withField("port", { type: "string" }), 'Kind spec.port: type was "integer" and is "string"'],
  [
    "a list whose items must differ now",
    withField("list", { "x-kubernetes-list-type": "set" }),
    'Kind spec.list: x-kubernetes-list-type was "atomic" and is "set"',
  ],
  [
    "an object that takes only known fields now",
    without("any", "x-kubernetes-preserve-unknown-fields"),
    "Kind spec.any: fields that are not known are dropped now",
  ],
  ["a null that is refused now", without("none", "nullable"), "Kind spec.none: null is no value any more"],
  [
    "a rule that is new",
    withRules({ rule: "self.name != 'x'", message: "x is taken" }),
    "Kind spec: a rule is new or has changed: x is taken",
  ],
  [
    "a rule without a message that is new",
    withRules({ rule: "self.name != 'x'" }),
    "Kind spec: a rule is new or has changed: self.name != 'x'",
  ],
  [
    "a rule that changed",
    { ...SPEC, "x-kubernetes-validations": [{ rule: "!has(self.port) || self.port > 2", message: "more than two" }] },
    "Kind spec: a rule is new or has changed: more than two",
  ],
  [
    "a rule of an item",
    withField("list", {
      items: { type: "string", maxLength: 3, "x-kubernetes-validations": [{ rule: "self != 'x'" }] },
    }),
    "Kind spec.list[]: a rule is new or has changed: self != 'x'",
  ],
  [
    "a count of more fields that were there",
    withRules({ rule: "[has(self.list), has(self.map), has(self.any)].filter(x, x).size() == 1" }),
    "Kind spec: a rule is new or has changed: [has(self.list), has(self.map), has(self.any)].filter(x, x).size() == 1",
  ],
  ["another default", withField("mode", { default: "B" }), 'Kind spec.mode: default was "A" and is "B"'],
];

for (const [what, spec, fault] of BREAKS) {
  test(`${what} is a break`, () => {
    assert.deepEqual(found(spec), [fault]);
  });
}

test("a kind that is gone is a break", () => {
  assert.deepEqual(breaks(rootsOf(SPEC), new Map()), ["Kind: the kind is gone"]);
});

const FITS: readonly (readonly [what: string, spec: Schema])[] = [
  ["nothing changed", SPEC],
  ["a new field that may be missing", { ...SPEC, properties: { ...SPEC.properties, other: { type: "string" } } }],
  ["a field that is required now and has a default", { ...SPEC, required: ["name", "mode"] }],
  ["a field that need not be there any more", { ...SPEC, required: [] }],
  ["a wider bound", withField("name", { maxLength: 9, minLength: 0 })],
  ["a bound that is gone", without("port", "maximum")],
  ["a pattern that is gone", without("name", "pattern")],
  ["one value more", withField("mode", { enum: ["A", "B", "C"] })],
  ["a rule that is gone", { ...SPEC, "x-kubernetes-validations": [] }],
  [
    "another message of a rule",
    { ...SPEC, "x-kubernetes-validations": [{ rule: "!has(self.port) || self.port != 2", message: "other words" }] },
  ],
  ["a count that names a field that is new", { ...withRules(COUNT_OF_THREE), properties: OTHER }],
  [
    "a rule about a field that is new",
    { ...withRules({ rule: "!has(self.other) || self.other != ''" }), properties: OTHER },
  ],
  ["another description", withField("name", { description: "Other words." })],
];

for (const [what, spec] of FITS) {
  test(`${what}: no break`, () => {
    assert.deepEqual(found(spec), []);
  });
}

test("the baseline holds equal parts once and comes back as it was", () => {
  const text = printBaseline(rootsOf(SPEC));
  assert.equal(printBaseline(parseBaseline(text)), text);
  assert.equal(text.split("\n").filter((line) => line.includes('"maxLength":3')).length, 2, "one of them is nullable");
});

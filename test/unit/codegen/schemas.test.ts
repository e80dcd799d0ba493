/** Faults in schemas must name file and path: the API server's own words name neither. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createGraph } from "../../../codegen/graph.ts";
import { readSchemas } from "../../../codegen/load.ts";
import { checkStructure } from "../../../codegen/structural.ts";

const KINDS = "group: example.dev\nversion: v1\nkinds: []\n";

function read(text: string, more: Readonly<Record<string, string>> = {}): ReturnType<typeof readSchemas> {
  return readSchemas(new Map(Object.entries({ kinds: KINDS, a: text, ...more })));
}

function check(text: string): void {
  const { components } = read(text);
  checkStructure(createGraph(components), components);
}

test("an unknown keyword names its file and path", () => {
  assert.throws(() => read("Spec:\n  type: object\n  properties:\n    name: {type: string, maxlength: 3}\n"), {
    message: "a.yaml: Spec.name: unknown keyword maxlength",
  });
});

test("a value of the wrong shape names the keyword and what it must be", () => {
  assert.throws(() => read("Spec:\n  type: object\n  x-gw-if: {when: {a: b}, only: [c]}\n"), {
    message: "a.yaml: Spec: x-gw-if has an unknown member only",
  });
  assert.throws(() => read("Spec: {type: object, x-gw-cel: nowhere}\n"), {
    message:
      "a.yaml: Spec: x-gw-cel must be one of process, connection, gateway, request, backend, llm, callout, mcp, response, log",
  });
});

test("nothing that changes the shape may stand beside a reference", () => {
  assert.throws(
    () =>
      read("A: {type: string, maxLength: 1}\nSpec:\n  type: object\n  properties:\n    a: {$ref: A, type: string}\n"),
    {
      message: "a.yaml: Spec.a: type may not stand beside $ref",
    },
  );
});

test("a name that two files use is refused", () => {
  assert.throws(() => read("A: {type: string, maxLength: 1}\n", { b: "A: {type: string, maxLength: 1}\n" }), {
    message: "b.yaml: A: the name is taken by a.yaml",
  });
});

test("a cycle is named from start to end", () => {
  const { components } = read(`
A: {type: object, properties: {b: {$ref: B}}}
B: {type: object, properties: {c: {type: array, maxItems: 1, items: {$ref: C}}}}
C: {type: object, properties: {b: {$ref: B}}}
`);
  assert.throws(() => createGraph(components), { message: "a.yaml: B: refers to itself: B → C → B" });
});

test("a reference to nothing names the place that refers", () => {
  const { components } = read("A: {type: object, properties: {b: {$ref: Missing}}}\n");
  assert.throws(() => createGraph(components), { message: "a.yaml: A.b: there is no component Missing" });
});

test("x-gw-include copies fields, required fields and rules, and refuses a field twice", () => {
  const { components } = read(`
Base:
  type: object
  required: [kind]
  properties: {kind: {type: string, maxLength: 9}}
  x-kubernetes-validations: [{rule: "self.kind != 'X'", message: no X}]
Full: {type: object, required: [name], x-gw-include: Base, properties: {name: {type: string, maxLength: 9}}}
`);
  const full = components.find(({ name }) => name === "Full")?.schema;
  assert.deepEqual(Object.keys(full?.properties ?? {}), ["name", "kind"]);
  assert.deepEqual(full?.required, ["kind", "name"]);
  assert.equal(full?.["x-kubernetes-validations"]?.length, 1);
  assert.throws(
    () =>
      read(
        "B: {type: object, properties: {n: {type: string}}}\nF: {type: object, x-gw-include: B, properties: {n: {type: string}}}",
      ),
    { message: "a.yaml: F.n: is a field of B too" },
  );
});

const STRUCTURAL_FAULTS: readonly (readonly [string, string, string])[] = [
  ["a text without bound", "A: {type: string}", "a.yaml: A: is a text without maxLength"],
  [
    "a list without bound",
    "A: {type: array, x-kubernetes-list-type: atomic, items: {type: integer}}",
    "a.yaml: A: is a list without maxItems",
  ],
  [
    "a map without bound",
    "A: {type: object, additionalProperties: {type: integer}}",
    "a.yaml: A: is a map without maxProperties",
  ],
  ["a node without type", "A: {maxLength: 4}", "a.yaml: A: has no type"],
  [
    "an object without name",
    "A: {type: object, properties: {b: {type: object, properties: {c: {type: integer}}}}}",
    "a.yaml: A.b: an object with fields must be a component with a name",
  ],
  [
    "a one-of over a field that does not exist",
    "A: {type: object, x-gw-exactly-one-of: [b, c], properties: {b: {type: integer}}}",
    "a.yaml: A: names the field c, which does not exist",
  ],
  [
    "an optional key of a list",
    "I: {type: object, properties: {k: {type: integer}}}\nA: {type: array, maxItems: 2, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {$ref: I}}",
    "a.yaml: A: has the key k, which is optional",
  ],
  [
    "a default outside its bounds",
    "A: {type: object, properties: {b: {type: integer, maximum: 3, default: 4}}}",
    "a.yaml: A.b: the default 4 must be <= 3",
  ],
];

for (const [name, text, message] of STRUCTURAL_FAULTS) {
  test(`${name} is refused with its place`, () => assert.throws(() => check(text), { message }));
}

test("a pattern that RE2 cannot read is refused with its place", () => {
  assert.throws(
    () => check("A: {type: string, maxLength: 4, pattern: '^(?=a)'}"),
    /^SchemaError: a\.yaml: A: the pattern/,
  );
});

test("a pattern that means something else in RE2 is refused", () => {
  // "\z" is the end of the text in RE2; JavaScript has no such word in a pattern with the flag u.
  assert.throws(() => check("A: {type: string, maxLength: 4, pattern: 'a\\z'}"), /the pattern a\\z/);
});

test("a rule that does not compile is refused with its place", () => {
  assert.throws(
    () =>
      check(
        "A: {type: object, properties: {b: {type: integer}}, x-kubernetes-validations: [{rule: 'self.b <', message: m}]}",
      ),
    /^SchemaError: a\.yaml: A: the rule self\.b < does not compile/,
  );
});

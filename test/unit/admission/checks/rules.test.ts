import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleNode } from "../../../../generated/rules.ts";
import { ruleViolations } from "../../../../src/admission/checks/rules.ts";

const NODE: RuleNode = {
  type: "object",
  fields: {
    spec: {
      type: "object",
      oneOf: [{ kind: "atMost", fields: ["a", "b"], message: "at most one of a and b" }],
      rules: [
        {
          rule: "self.min <= self.max",
          messageExpression: "'min is ' + string(self.min)",
          fieldPath: ".min",
          reason: "FieldValueForbidden",
        },
        { rule: "self.max == oldSelf.max", message: "max is immutable" },
      ],
      fields: {
        list: { type: "array", items: { type: "string", rules: [{ rule: "self != 'bad'", message: "not bad" }] } },
      },
      values: { type: "string" },
    },
  },
};

function lines(spec: unknown, old?: unknown): string[] {
  return [...ruleViolations(NODE, { spec }, old === undefined ? undefined : { spec: old })].map(
    ({ path, message }) => `${path}: ${message}`,
  );
}

test("a rule names its field and makes its message", () => {
  assert.deepEqual(
    [...ruleViolations(NODE, { spec: { min: 3, max: 2 } }, undefined)],
    [
      {
        path: "spec.min",
        severity: "error",
        reason: "FieldValueForbidden",
        message: 'Invalid value: "object": min is 3',
        suggestion: "",
      },
    ],
  );
});

test("rules about changes wait for an old value", () => {
  assert.deepEqual(lines({ min: 1, max: 2 }), []);
  assert.deepEqual(lines({ min: 1, max: 2 }, { min: 1, max: 2 }), []);
  assert.deepEqual(lines({ min: 1, max: 2 }, { min: 1, max: 3 }), ['spec: Invalid value: "object": max is immutable']);
});

test("items are visited, and counts of members are plain code", () => {
  assert.deepEqual(lines({ min: 1, max: 2, a: 1, b: 1, list: ["ok", "bad"] }), [
    'spec: Invalid value: "object": at most one of a and b',
    'spec.list[1]: Invalid value: "string": not bad',
  ]);
});

test("a rule that fails to evaluate refuses", () => {
  const found = lines({ min: 1 });
  assert.equal(found.length, 1);
  assert.match(found[0] ?? "", /no such key: max evaluating rule/);
});

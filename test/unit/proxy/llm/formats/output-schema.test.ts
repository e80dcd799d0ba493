/** Schemas of answers for Claude: closed objects without limits, whatever the client wrote. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { printOutputSchema, withOutput } from "../../../../../src/proxy/llm/formats/shared/output-schema.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";
import { findSchemaFault } from "../../../../support/servers/llm/anthropic-checks.ts";

test("a schema is closed, and limits that Claude does not know are told in the description", () => {
  const printed = printOutputSchema({
    schema: {
      $schema: "draft",
      type: "object",
      properties: {
        price: { type: "number", minimum: 0, exclusiveMaximum: 5, description: "In euros." },
        tags: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", format: "color" } },
        owner: { oneOf: [{ $ref: "#/$defs/owner" }, { type: "null" }] },
      },
      $defs: { owner: { type: ["object", "null"], properties: {}, additionalProperties: true } },
    },
  });
  assert.deepEqual(printed, {
    type: "object",
    properties: {
      price: { type: "number", description: "In euros. (minimum: 0, exclusiveMaximum: 5)" },
      tags: {
        type: "array",
        minItems: 1,
        items: { type: "string", description: 'format: "color"' },
        description: "maxItems: 3",
      },
      owner: { anyOf: [{ $ref: "#/$defs/owner" }, { type: "null" }] },
    },
    $defs: { owner: { type: ["object", "null"], properties: {}, additionalProperties: false } },
    additionalProperties: false,
  });
});

test("an answer that may be any object is asked for by an instruction", () => {
  for (const [output, count] of [
    [{}, 1],
    [{ schema: { type: "object" } }, 1],
    [{ schema: { type: "object", additionalProperties: true } }, 1],
    [{ schema: { type: "object", additionalProperties: false } }, 0],
    [{ schema: { type: "object", properties: {} } }, 0],
    [undefined, 0],
  ] as const) {
    const instructions = withOutput({ system: [], ...(output === undefined ? {} : { output }) });
    assert.equal(instructions.length, count, JSON.stringify(output));
    assert.equal(printOutputSchema(output) === undefined, count === 1 || output === undefined, JSON.stringify(output));
  }
});

/** Schemas, with those inside them. */
function schemasAround(inner?: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  const nested = inner && {
    properties: fc.dictionary(fc.constantFrom("a", "minimum", "__proto__"), inner, { maxKeys: 2 }),
    items: inner,
    anyOf: fc.array(inner, { maxLength: 2 }),
    additionalProperties: fc.oneof(fc.boolean(), inner),
  };
  const type = fc.constantFrom<string | string[]>("object", "string", "array", ["object", "null"]);
  const limits = { maximum: fc.integer(), minItems: fc.integer({ min: 0, max: 3 }), description: fc.string() };
  // Members of JSON alone.
  return fc.record({ type, ...limits, ...nested }, { requiredKeys: [] }) as fc.Arbitrary<JsonObject>;
}

const schemas = schemasAround(schemasAround(schemasAround()));

test("Claude takes every schema that is printed, and a schema that it takes stays as it is", async () => {
  await assertProperty(
    fc.property(schemas, (schema) => {
      const printed = printOutputSchema({ schema });
      if (printed === undefined) return;
      assert.equal(findSchemaFault(printed, "schema"), undefined);
      assert.deepEqual(printOutputSchema({ schema: printed }), printed);
    }),
  );
});

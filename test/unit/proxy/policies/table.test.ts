/** The two tables of policies, that of the translator and that of the data plane, held against each other and the schema. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TrafficUnitSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { REQUEST_ORDER } from "../../../../src/proxy/policies/index.ts";
import { UNIT_TRANSLATORS } from "../../../../src/translator/policies/index.ts";
import { schemaFields } from "../../../fields/schema-fields.ts";

const ROOT = new URL("../../../../", import.meta.url).pathname;

/** Units without a field of `traffic`, and the second half of one that runs at two places. */
const WITHOUT_FIELD = ["failClosed", "responseBuffer"];
/** Fields that are no policy: when the others run. */
const NO_POLICY = ["phase"];

test("the translator's table has the policies of the data plane, in the order in which they run", () => {
  const translated = REQUEST_ORDER.filter((name) => !WITHOUT_FIELD.includes(name));
  assert.deepEqual(Object.keys(UNIT_TRANSLATORS), translated);
});

test("every unit of the message has an entry in both tables", () => {
  const units = TrafficUnitSchema.fields.map(({ localName }) => localName).sort();
  assert.deepEqual(REQUEST_ORDER.filter((name) => name !== "responseBuffer").toSorted(), units);
});

test("every member of `traffic` belongs to a policy, and every policy to a member", () => {
  const members = new Set(
    schemaFields(ROOT).flatMap(({ field }) => /^GwPolicy spec\.traffic\.(\w+)/.exec(field)?.[1] ?? []),
  );
  for (const name of NO_POLICY) assert.ok(members.delete(name), name);
  // The two limits are one block with two members.
  const fields = Object.keys(UNIT_TRANSLATORS).map((name) =>
    /^(local|global)RateLimit$/.test(name) ? "rateLimit" : name,
  );
  assert.deepEqual([...new Set(fields)].sort(), [...members].sort());
});

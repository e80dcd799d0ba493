import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Case, type Group, officialCases } from "./cases.ts";
import { runCase } from "./runner.ts";

let groups: ReadonlyMap<Group, readonly Case[]>;

before(async () => {
  groups = await officialCases();
});

/** What must pass, of how many there are. A change of the official data has to change these figures too. */
const GATE: Readonly<Record<Group, { readonly values: number; readonly errors: number; readonly types: number }>> = {
  core: { values: 1001, errors: 105, types: 14 },
  string: { values: 163, errors: 50, types: 0 },
  math: { values: 182, errors: 17, types: 0 },
  optional: { values: 56, errors: 3, types: 0 },
  "two-variable macros": { values: 38, errors: 8, types: 0 },
  binding: { values: 8, errors: 0, types: 0 },
  encoder: { values: 4, errors: 0, types: 0 },
  network: { values: 60, errors: 9, types: 0 },
};

for (const [group, gate] of Object.entries(GATE)) {
  test(`the official test data of ${group} pass: ${gate.values} values and ${gate.errors} errors of the right kind`, () => {
    const passed = { value: 0, error: 0, type: 0 };
    const failures: string[] = [];
    // The keys of GATE are the groups.
    for (const given of groups.get(group as Group) ?? []) {
      const problem = runCase(given);
      if (problem === undefined) passed[given.expected.kind]++;
      else failures.push(`${given.name}: ${given.expression} ${problem}`);
    }
    assert.deepEqual(failures, []);
    assert.deepEqual({ values: passed.value, errors: passed.error, types: passed.type }, gate);
  });
}

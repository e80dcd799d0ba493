/** The mistakes of new users, a row each: what `gwproxy validate` says has the place, the cause and the next step. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { rowsOf, validateText } from "../../support/gateway/validated.ts";

interface Mistake {
  readonly name: string;
  readonly text: string;
  /** -1: where the parser notices, which is not before the mistake. */
  readonly line: number;
  readonly message: string;
  readonly next: string;
  readonly path?: string;
  readonly severity?: "warning";
}

// The file stands beside this one and has this form.
const MISTAKES = parse(readFileSync(join(import.meta.dirname, "mistakes.yaml"), "utf8")) as readonly Mistake[];

test("there are fifty mistakes and more", () => assert.ok(MISTAKES.length >= 50));

for (const { name, text, line, message, next, path, severity = "error" } of MISTAKES) {
  test(`a new user reads what is wrong, where, and what to do: ${name}`, async (t) => {
    const rows = await rowsOf(t, text, { schemaOnly: false });
    const found = rows.find(
      (row) =>
        (line === -1 || row.line === line) &&
        (path === undefined || row.path === path) &&
        new RegExp(message, "s").test(row.message),
    );
    const all = JSON.stringify(rows, null, 1);
    assert.ok(found, all);
    assert.match(found.suggestion, new RegExp(next, "s"), all);
    assert.equal(found.severity, severity, all);
    for (const row of rows) assert.notEqual(row.suggestion, "", all);
  });
}

test("a file that is not text cannot be read, which is said", async (t) => {
  const binary = Uint8Array.from([0xff, 0xfe, 0x00, 0x80]);
  await assert.rejects(validateText(t, binary), { exitCode: 2, message: /policy\.yaml: cannot be read/ });
});

test("an empty file is no fault of the others", async (t) => {
  assert.deepEqual(await rowsOf(t, "# nothing yet\n---\n", { schemaOnly: false }), []);
});

/** What `gwproxy validate` says of references: one sound set of manifests, and the ways in which each can lead nowhere. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { rowsOf, validateText } from "../../support/gateway/validated.ts";

const FOLDER = join(import.meta.dirname, "references");
const SOUND = readFileSync(join(FOLDER, "sound.yaml"), "utf8");

interface Row {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly object: string;
  readonly path: string;
  readonly message: string;
  readonly next: string;
  readonly severity?: "warning";
}

// The file stands beside this one and has this form.
const ROWS = parse(readFileSync(join(FOLDER, "rows.yaml"), "utf8")) as readonly Row[];

/** That parameters have no effect yet is not a matter of references. */
function withoutParameters<Row extends { object: string }>(rows: readonly Row[]): Row[] {
  return rows.filter(({ object }) => !object.startsWith("GwParameters "));
}

test("references that lead somewhere are no problem", async (t) => {
  const rows = await rowsOf(t, SOUND, { schemaOnly: false });
  assert.deepEqual(withoutParameters(rows), []);
});

for (const { name, from, to, object, path, message, next, severity = "error" } of ROWS) {
  test(`a reference that leads nowhere is reported with its place and the next step: ${name}`, async (t) => {
    const text = SOUND.replace(from, () => to);
    assert.notEqual(text, SOUND);
    const rows = withoutParameters(await rowsOf(t, text, { schemaOnly: false }));
    const row = rows.find((each) => each.object === object && each.path === path);
    assert.ok(row, JSON.stringify(rows, null, 1));
    assert.match(row.message, new RegExp(message, "s"));
    assert.match(row.suggestion, new RegExp(next, "s"));
    assert.equal(row.severity, severity);
    assert.ok(row.line > 1);
    // A reference is reported once, and what follows from it is not reported at all.
    if (severity === "error")
      assert.deepEqual(rows.filter((each) => each.object === object).length, 1, JSON.stringify(rows, null, 1));
    assert.deepEqual(withoutParameters(await rowsOf(t, text, { schemaOnly: true })), []);
  });
}

test("a reference to an object that breaks a rule is not reported as well", async (t) => {
  const text = SOUND.replace("gatewayClassName: gwproxy", "gatewayClassName: [gwproxy]");
  const rows = withoutParameters(await rowsOf(t, text, { schemaOnly: false }));
  assert.deepEqual(
    rows.map(({ object }) => object),
    ["Gateway default/gw"],
  );
});

test("references make the exit code 1, and with --schema-only 0", async (t) => {
  const text = SOUND.replace("name: ap", "name: apple");
  assert.equal(
    (await validateText(t, SOUND.replace("{name: app, port: 80}\n", "{name: ap, port: 80}\n"), { schemaOnly: false }))
      .code,
    1,
  );
  assert.equal((await validateText(t, text, { schemaOnly: true })).code, 0);
  assert.equal((await validateText(t, SOUND, { schemaOnly: false })).code, 0);
});

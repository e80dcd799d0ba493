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

const CATALOG = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwParameters
metadata: {name: prices}
spec: {modelCatalog: {sources: [{configMap: {name: prices}}, {configMap: {name: prices, key: own.json}}, {configMap: {name: elsewhere}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data:
  catalog.json: '{"providers": {"openai": {"models": {"gpt-9": {"rates": {"input": "2.5"}}}}}}'
  own.json: '{"providers": {"anthropic": {"models": {"claude-9": {"rates": {"output": "1"}}}}}}'
`;

test("the text of a model catalog is read, and its first fault is reported with its path", async (t) => {
  const faultsOf = async (text: string): Promise<string[]> => {
    const rows = await rowsOf(t, text, { schemaOnly: false });
    return rows
      .filter(({ message }) => /catalog|no text/.test(message) && !message.includes("elsewhere"))
      .map(
        ({ object, path, line, message, suggestion }) => `${object} ${path} ${line > 1}: ${message} (${suggestion})`,
      );
  };
  assert.deepEqual(await faultsOf(CATALOG), []);
  assert.deepEqual(await faultsOf(CATALOG.replace('"input"', '"inptu"').replace('"output": "1"', '"output": "-1"')), [
    'ConfigMap default/prices data["catalog.json"] true: the model catalog cannot be read: providers.openai.models["gpt-9"].rates.inptu: unknown key (did you mean `input`?)',
    'ConfigMap default/prices data["own.json"] true: the model catalog cannot be read: providers.anthropic.models["claude-9"].rates.output: not a decimal text (write dollars per million tokens with at most six decimals, such as "2.5")',
  ]);
  assert.deepEqual(await faultsOf(CATALOG.replace("own.json: '{", "other.json: '{")), [
    "GwParameters default/prices spec.modelCatalog.sources[1].configMap true: ConfigMap default/prices has no text in entry own.json (add it)",
  ]);
});

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { validateFiles } from "../../../../src/sources/directory/validate-files.ts";

test("problems come by file and place, each with object, path and the next step", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "validate-files-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const head =
    "apiVersion: gwproxy.dev/v1alpha1\nkind: GwPolicy\nmetadata: {name: keys}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]\n";
  await writeFile(join(folder, "b.yaml"), `${head}  traffic:\n    timeout: {request: 1s}\n---\nkind: [\n`);
  await writeFile(join(folder, "a.yaml"), `${head}  traffic:\n    timeouts: {request: 1x}\n`);
  const { diagnostics, objects } = await validateFiles([folder]);
  const brief = diagnostics.map(({ file, line, column, object, path, suggestion }) => [
    file.slice(folder.length + 1),
    line,
    column,
    object,
    path,
    suggestion,
  ]);
  assert.deepEqual(brief[0]?.slice(0, 5), ["a.yaml", 7, 25, "GwPolicy default/keys", "spec.traffic.timeouts.request"]);
  assert.match(String(brief[0]?.[5]), /^Duration: /);
  assert.deepEqual(brief[1]?.slice(0, 3), ["b.yaml", 3, 18]);
  assert.match(diagnostics[1]?.message ?? "", /defined twice/);
  assert.equal(objects.length, 2);
  assert.deepEqual(brief[2], [
    "b.yaml",
    7,
    5,
    "GwPolicy default/keys",
    "spec.traffic.timeout",
    "did you mean `timeouts`?",
  ]);
  assert.equal(brief[3]?.[0], "b.yaml");
  assert.equal(brief.length, 4);
});

test("the quickstart has no problem", async () => {
  const { diagnostics } = await validateFiles([join(import.meta.dirname, "../../../../examples/quickstart")]);
  assert.deepEqual(diagnostics, []);
});

test("a path that does not exist is an error of its own", async () => {
  await assert.rejects(validateFiles(["/nonexistent/manifests"]), {
    code: "source_failed",
    message: /no such file or folder/,
  });
});

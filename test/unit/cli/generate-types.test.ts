/** `gwproxy generate types` from the command line: what it prints, writes and says. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { GenerateTypesOptions } from "../../../src/cli/commands/generate.ts";
import { runGenerateTypes } from "../../../src/cli/run/generate-types.ts";

const CRD = join(import.meta.dirname, "../../../crds/gwproxy.dev_gwpolicies.yaml");

async function run(options: Partial<GenerateTypesOptions>): Promise<string> {
  let text = "";
  const terminal = { isColoured: false, out: (part: string) => void (text += part), err: () => undefined };
  await runGenerateTypes({ file: [CRD], outputDir: undefined, stdout: false, only: undefined, ...options }, terminal);
  return text;
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "gwproxy-generate-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

test("without a folder everything is printed, each file behind its name; one file alone is printed as it is", async () => {
  const all = await run({});
  for (const path of ["gwpolicy.v1alpha1.ts", "gwpolicy.v1alpha1.validator.js", "gwpolicy.v1alpha1.validator.d.ts"]) {
    assert.ok(all.includes(`// file: gwproxy.dev/${path}\n`), path);
  }
  const types = await run({ only: "types", stdout: true });
  assert.doesNotMatch(types, /\/\/ file:/);
  assert.match(types, /export interface GwPolicy \{/);
});

test("with a folder the files are written below it", async (t) => {
  const out = await folder(t);
  const said = await run({ outputDir: out, only: "validators" });
  assert.match(said, /wrote .*gwpolicy\.v1alpha1\.validator\.js\n/);
  assert.match(
    readFileSync(join(out, "gwproxy.dev/gwpolicy.v1alpha1.validator.js"), "utf8"),
    /export function isGwPolicy/,
  );
  assert.equal(existsSync(join(out, "gwproxy.dev/gwpolicy.v1alpha1.ts")), false);
});

test("a CRD that cannot be used is exit code 1, a file that cannot be read 2", async (t) => {
  const path = join(await folder(t), "bad.yaml");
  await writeFile(path, "kind: Service\n");
  await assert.rejects(run({ file: [path] }), { exitCode: 1, message: /there is no CustomResourceDefinition/ });
  await assert.rejects(run({ file: ["/nonexistent/crd.yaml"] }), { exitCode: 2, message: /cannot read/ });
});

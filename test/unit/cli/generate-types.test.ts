/** `gwproxy generate types` from the command line: what it prints, writes and says. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { type GenerateTypesOptions, runGenerateTypes } from "../../../src/cli/generate-types.ts";
import { createProgress } from "../../../src/cli/output.ts";
import { meshCrds } from "../../support/fixtures/mesh-crds.ts";

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

test("the CRDs of a service mesh take less than 30 s, and each step is said on stderr", async (t) => {
  const path = join(await folder(t), "mesh.yaml");
  await writeFile(path, meshCrds(14));
  const out = await folder(t);
  const before = process.cpuUsage();
  let said = "";
  const terminal = { isColoured: false, out: () => undefined, err: (part: string) => void (said += part) };
  await runGenerateTypes({ file: [path], outputDir: out, stdout: false, only: undefined }, terminal);
  const { user, system } = process.cpuUsage(before);
  // Processor time: other processes do not count.
  assert.ok((user + system) / 1e6 < 30, `${(user + system) / 1e6} s`);
  assert.match(said, /^generating MeshKind0 v1 \(1 of 42\)\n/);
  assert.match(said, /generating MeshKind13 v1alpha3 \(42 of 42\)\n$/);
  const types = readFileSync(join(out, "mesh.example.dev/meshkind13.v1alpha3.ts"), "utf8");
  assert.match(types, /export interface MeshKind13 \{/);
});

test("in a terminal the steps are one line that is written over and gone at the end", () => {
  let said = "";
  const progress = createProgress({ err: (part) => void (said += part) }, { isTTY: true });
  progress.show("generating A v1 (1 of 2)");
  progress.show("generating B v1 (2 of 2)");
  progress.clear();
  assert.equal(said, "\r\u001B[Kgenerating A v1 (1 of 2)\r\u001B[Kgenerating B v1 (2 of 2)\r\u001B[K");
});

test("CRDs are taken from a folder and by a pattern as well", async () => {
  const crds = join(import.meta.dirname, "../../../crds/documented");
  for (const path of [crds, join(crds, "*policies.yaml")])
    assert.match(await run({ file: [path] }), /export interface GwPolicy \{/);
});

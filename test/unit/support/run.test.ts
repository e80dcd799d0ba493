/** What test/run.ts calls a failure: a run that is green because it saw nothing would hide everything else. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

const RUN = join(import.meta.dirname, "../../run.ts");
const IMPORTS = `import assert from "node:assert/strict";\nimport { beforeEach, after, test } from "node:test";\n`;

/** Each file as one process runs them, in the order of their names. */
function run(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): { readonly code: number | null; readonly output: string } {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-run-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.ts`), IMPORTS + text);
  const args = ["--import", "tsx", RUN, "--at-once", "1", join(folder, "*.test.ts")];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { code: status, output: stdout + stderr };
}

test("files that pass are green; what one file sets up for each of its tests happens for no other", (t) => {
  const hook = `let calls = 0;\nbeforeEach(() => void (calls += 1));\n`;
  const { code, output } = run(t, {
    a: `${hook}test("one", () => assert.equal(calls, 1));\ntest("two", () => assert.equal(calls, 2));\n`,
    b: `${hook}test("one", () => assert.equal(calls, 1));\ntest("later", { skip: "no root" }, () => undefined);\n`,
  });
  assert.equal(code, 0, output);
  assert.match(output, /skipped:\n\s+\S*b\.test\.ts › later\n/);
  assert.match(output, /^2 files in .*\n4 passed, 0 failed\n/m);
});

test("each way to fail is a failure that names its file, and the files behind it run", (t) => {
  const { code, output } = run(t, {
    a: `test("says what is wrong", async (t) => {\n  await t.test("deep", () => assert.equal(1, 2));\n});\n`,
    b: `syntax error\n`,
    c: `test("ends its process", () => process.exit(0));\n`,
    d: `const unused = 1;\n`,
    e: `after(() => {\n  throw new Error("cannot clean up");\n});\ntest("passes", () => undefined);\n`,
    z: `test("is reached", () => process.stdout.write("reached the last file\\n"));\n`,
  });
  assert.equal(code, 1);
  assert.match(output, /a\.test\.ts › says what is wrong › deep\n/);
  assert.match(output, /b\.test\.ts\n/);
  assert.match(output, /c\.test\.ts: its process ended with 0\n/);
  assert.match(output, /d\.test\.ts: has no test\n/);
  assert.match(output, /cannot clean up/);
  assert.match(output, /reached the last file/);
});

/** The command line as a user types it: where manifests come from, what is refused, and with which exit code. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";

const ROOT = join(import.meta.dirname, "../../..");
const BIN = join(ROOT, "bin/gwproxy.mjs");
const QUICKSTART = join(ROOT, "examples/quickstart");

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function run(args: readonly string[], options: { stdin?: string; cwd?: string } = {}): Promise<Ended> {
  const child = spawn(process.execPath, [BIN, ...args], { cwd: options.cwd, stdio: "pipe" });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  child.stdin.end(options.stdin ?? "");
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, out, err };
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-command-line-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const BROKEN = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: bad}\nspec: {rule: []}\n";

test("manifests come from standard input, whose faults have a place in it", async () => {
  const { code, out } = await run(["validate", "-f", "-", "-o", "json"], { stdin: BROKEN });
  assert.equal(code, 1);
  const faults = JSON.parse(out) as { file: string; line: number; path: string }[];
  assert.ok(
    faults.some(({ file, line, path }) => file === "stdin" && line === 4 && path.startsWith("spec.rule")),
    out,
  );
  const whole = readFileSync(join(QUICKSTART, "gateway.yaml"), "utf8");
  assert.equal((await run(["validate", "-"], { stdin: whole })).code, 0);
});

test("paths are flags or arguments, patterns in quotes included", async (t) => {
  const folder = temporaryFolder(t);
  cpSync(QUICKSTART, join(folder, "good/quickstart"), { recursive: true });
  writeFileSync(join(folder, "broken.yaml"), BROKEN);
  for (const args of [
    ["-f", "good/*/*.yaml"],
    ["-f", "good/quickstart/{gateway,routes}.yaml", "good"],
  ]) {
    const { code, out, err } = await run(["validate", ...args], { cwd: folder });
    assert.equal(code, 0, `${args.join(" ")}: ${out}${err}`);
  }
  for (const args of [["*"], ["-f", "good", "broken.yaml"], [join(folder, "b?oken.yaml")]]) {
    const { code, out } = await run(["validate", ...args], { cwd: folder });
    assert.equal(code, 1, args.join(" "));
    assert.match(out, /broken\.yaml:4:\d+: error: HTTPRoute/);
  }
  const { code, err } = await run(["validate", "-f", "none/*.yaml"], { cwd: folder });
  assert.equal(code, 2);
  assert.match(err, /none\/\*\.yaml: no file matches/);
});

test("--version, -V and version say the same", async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  const wanted = `gwproxy ${version} (Node.js ${process.versions.node})\n`;
  for (const word of ["--version", "-V", "version"])
    assert.deepEqual(await run([word]), { code: 0, out: wanted, err: "" });
});

/** Arguments, and what stderr says beside the exit code 2. */
const REFUSED: readonly (readonly [args: string, message: RegExp])[] = [
  ["validat -f x", /unknown command 'validat'\n\(Did you mean validate\?\)/],
  ["serve", /unknown command 'serve'\n\(add --help/],
  ["generate typs", /unknown command 'typs'\n\(Did you mean types\?\)/],
  ["help generate nothing", /unknown command 'nothing'/],
  ["up", /no manifests; name files or folders/],
  ["validate --outptu json x", /unknown option '--outptu'\n\(Did you mean --output\?\)/],
  ["version -o xml", /Allowed choices are text, json, yaml/],
  ["completion tcsh", /Allowed choices are bash, zsh, fish/],
];

for (const [args, message] of REFUSED) {
  test(`gwproxy ${args} ends with 2 and says what was meant`, async () => {
    const { code, out, err } = await run(args.split(" "));
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, message);
  });
}

test("help knows each command, and each has examples", async () => {
  const { out } = await run(["help"]);
  const names = [...out.matchAll(/^ {2}([a-z]+)(?: \[| <|  )/gm)].map(([, name = ""]) => name);
  assert.ok(
    ["up", "validate", "controller", "completion", "help"].every((name) => names.includes(name)),
    out,
  );
  const pages = [...names.filter((name) => name !== "generate"), "generate types"];
  await Promise.all(
    pages.map(async (page) => {
      const { code, out: help } = await run(["help", ...page.split(" ")]);
      assert.equal(code, 0);
      assert.match(help, /\nExamples:\n/, page);
    }),
  );
});

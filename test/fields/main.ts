/**
 * The ledger of fields. `--write` writes docs/reference/fields.md, `--print` shows the counts, `--verify` proves that
 * the page is fresh, `--check` runs every proof without its field (a share that rotates by day; `--all` runs them all).
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { schemaFields } from "./schema-fields.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = join(ROOT, "docs/reference/fields.md");
const SHARES = 4;

const { values } = parseArgs({
  options: {
    write: { type: "boolean", default: false },
    print: { type: "boolean", default: false },
    verify: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help)
  process.stdout.write("usage: node test/fields/main.ts [--write] [--print] [--verify] [--check [--all]]\n");

if (values.check) check(values.all);
if (values.write || values.print || values.verify) await ledger();

function check(all: boolean): void {
  const day = Math.floor(Date.now() / 86_400_000);
  const share = all ? "0/1" : `${day % SHARES}/${SHARES}`;
  process.stdout.write(`proofs without their field, share ${share}\n`);
  const run = spawnSync(
    process.execPath,
    [
      "--import",
      "tsx",
      "--test",
      "--test-concurrency=2",
      "--test-timeout=300000",
      ...globSync("test/feature/**/*.test.ts", { cwd: ROOT }),
    ],
    { cwd: ROOT, stdio: "inherit", env: { ...process.env, GWPROXY_FIELDS_MODE: "check", GWPROXY_FIELDS_SHARE: share } },
  );
  if (run.status !== 0) process.exit(1);
}

async function ledger(): Promise<void> {
  process.env["GWPROXY_FIELDS_MODE"] = "list";
  const { proofs } = await import("../support/prove.ts");
  const proven = new Map<string, { file: string; name: string }[]>();
  for (const file of globSync("test/feature/**/*.test.ts", { cwd: ROOT }).sort()) {
    const before = proofs.length;
    await import(join(ROOT, file));
    for (const { field, name } of proofs.slice(before))
      proven.set(field, [...(proven.get(field) ?? []), { file, name }]);
  }
  const fields = schemaFields(ROOT);
  const unknown = [...proven.keys()].filter((field) => !fields.includes(field));
  if (unknown.length > 0) fail(`proofs name fields that no schema has:\n  ${unknown.join("\n  ")}`);

  const page = render(fields, proven);
  const count = fields.filter((field) => proven.has(field)).length;
  if (values.print) process.stdout.write(`${page}\n`);
  if (values.write) writeFileSync(PAGE, page);
  if (values.verify && readFileSync(PAGE, "utf8") !== page)
    fail("docs/reference/fields.md is stale: run `make fields`");
  process.stdout.write(`${count} of ${fields.length} fields are proven\n`);
  // Loading feature files may have left handles open; the ledger is complete.
  process.exit(0);
}

function render(
  fields: readonly string[],
  proven: ReadonlyMap<string, readonly { file: string; name: string }[]>,
): string {
  const kinds = [...new Set(fields.map((field) => field.split(" ")[0] as string))];
  const lines = [
    "# Fields and their proofs",
    "",
    "Written by `make fields`. A proof is a test through real sockets; `make fields-check` runs it without the field, and it must fail.",
    "",
  ];
  lines.push("| kind | fields | proven |", "|---|---|---|");
  for (const kind of kinds) {
    const own = fields.filter((field) => field.startsWith(`${kind} `));
    lines.push(`| ${kind} | ${own.length} | ${own.filter((field) => proven.has(field)).length} |`);
  }
  for (const kind of kinds) {
    lines.push("", `## ${kind}`, "", "| field | proven by |", "|---|---|");
    for (const field of fields.filter((each) => each.startsWith(`${kind} `))) {
      const tests = (proven.get(field) ?? []).map(({ file, name }) => `${name} (${file})`).join("; ");
      lines.push(`| \`${field.slice(kind.length + 1)}\` | ${tests === "" ? "not proven yet" : tests} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

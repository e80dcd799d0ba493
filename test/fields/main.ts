/**
 * The ledger of fields. `--write` writes docs/reference/fields.md, the page of each kind and the README's list of what is not
 * served, `--print` shows the counts, `--verify` proves that the pages are fresh and that second values are declared, `--check`
 * runs every proof without its field and with its second value.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { emitDocs, type Proof } from "../../codegen/emit/docs.ts";
import { createGraph } from "../../codegen/graph.ts";
import { loadSchemas } from "../../codegen/load.ts";
import { collectExamples } from "./examples.ts";
import { findSecondValue } from "../support/proofs/second-values.ts";
import { findImplementation, findMentions } from "./implementation.ts";
import { findUnserved, readServedNames, updateReadme } from "./not-served.ts";
import { schemaFields } from "./schema-fields.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGES = "docs/reference";
/** As many as the smallest machine that runs this has cores. */
const PROCESSES = 2;
/** A process keeps what its tests held, some megabytes for each, until it ends. */
const FILES_PER_PROCESS = 4;

const { values } = parseArgs({
  options: {
    write: { type: "boolean", default: false },
    print: { type: "boolean", default: false },
    verify: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    field: { type: "string", default: "" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help)
  process.stdout.write("usage: node test/fields/main.ts [--write] [--print] [--verify] [--check [--field PATTERN]]\n");

if (values.check) await check(values.field);
if (values.write || values.print || values.verify) await ledger();

/** Each process loads the code once and runs the counter-proofs of its files; what fails is printed with file and field. */
async function check(pattern: string): Promise<void> {
  const files = globSync("test/feature/**/*.test.ts", { cwd: ROOT }).filter((file) =>
    /\/prove\.ts|\/forms\.ts/.test(read(join(ROOT, file))),
  );
  const starts = Array.from({ length: Math.ceil(files.length / FILES_PER_PROCESS) }, (_none, at) => at);
  const left = starts.values();
  let done = 0;
  let failed = false;
  const work = async (): Promise<void> => {
    for (const at of left) {
      const share = files.slice(at * FILES_PER_PROCESS, (at + 1) * FILES_PER_PROCESS);
      failed = (await runCounterProofs(share, pattern)) !== 0 || failed;
      done += share.length;
      process.stdout.write(`counter-proofs of ${done} of ${files.length} files\n`);
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, work));
  if (failed) process.exit(1);
}

async function runCounterProofs(files: readonly string[], pattern: string): Promise<number | null> {
  const child = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      "--test-name-pattern=^counter-proof ",
      "--test-reporter=dot",
      join(import.meta.dirname, "counter-proofs.ts"),
      ...files.map((file) => join(ROOT, file)),
    ],
    {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, GWPROXY_FIELDS_MODE: "list", GWPROXY_FIELDS_PATTERN: pattern },
    },
  );
  const output = text(child.stdout);
  const [code] = (await once(child, "close")) as [number | null]; // as node:child_process says
  process.stdout.write(await output);
  return code;
}

async function ledger(): Promise<void> {
  const proven = new Map<string, Proof[]>();
  for (const [field, proof] of await listProofs()) proven.set(field, [...(proven.get(field) ?? []), proof]);
  const schema = schemaFields(ROOT);
  const fields = schema.map(({ field }) => field);
  const unknown = [...proven.keys()].filter((field) => !fields.includes(field));
  if (unknown.length > 0) fail(`proofs name fields that no schema has:\n  ${unknown.join("\n  ")}`);

  const missing = schema.filter(
    ({ field, scale }) => scale !== undefined && proven.has(field) && findSecondValue(field) === undefined,
  );
  if (missing.length > 0) {
    const list = missing.map(({ field, scale }) => `${field} (${scale})`).join("\n  ");
    fail(
      `proofs of these fields pass whatever their value; add a second one to test/support/proofs/second-values.ts:\n  ${list}`,
    );
  }

  const list = render(fields, proven);
  const pages = new Map([[`${PAGES}/fields.md`, list], ...writtenFrom(proven)]);
  const count = fields.filter((field) => proven.has(field)).length;
  if (values.print) process.stdout.write(`${list}\n`);
  for (const [path, text] of pages) {
    if (values.write) writeFileSync(join(ROOT, path), text);
    if (values.verify && read(join(ROOT, path)) !== text) fail(`${path} is stale: run \`make generate\``);
  }
  process.stdout.write(`${count} of ${fields.length} fields are proven\n`);
}

/** In a process of its own: see list.ts. */
async function listProofs(): Promise<[field: string, proof: Proof][]> {
  const child = fork(join(import.meta.dirname, "list.ts"), {
    execArgv: ["--import", "tsx", "--test-name-pattern=^no test has this name$"],
    env: { ...process.env, GWPROXY_FIELDS_MODE: "list" },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const { promise, resolve } = Promise.withResolvers<[string, Proof][]>();
  child.once("message", (found) => resolve(found as [string, Proof][]));
  child.once("exit", (code) => {
    if (code !== 0) fail("the proofs could not be listed");
  });
  return promise;
}

/** The pages of our kinds and the README, with what only code and tests know. Paths are below the root. */
function writtenFrom(proofs: ReadonlyMap<string, readonly Proof[]>): Map<string, string> {
  const { components, kinds } = loadSchemas(join(ROOT, "crds/schemas/"));
  const graph = createGraph(components);
  const pages = emitDocs(graph, kinds, {
    proofs,
    implementation: findImplementation(ROOT),
    mentions: findMentions(ROOT, graph),
    examples: collectExamples(ROOT, graph, kinds),
  });
  const unserved = findUnserved(graph, kinds, new Set(proofs.keys()), readServedNames(ROOT));
  return new Map([
    ...[...pages].map(([name, text]) => [`${PAGES}/${name}`, text] as const),
    ["README.md", updateReadme(read(join(ROOT, "README.md")), unserved)],
  ]);
}

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function render(
  fields: readonly string[],
  proven: ReadonlyMap<string, readonly { file: string; name: string }[]>,
): string {
  const kinds = [...new Set(fields.map((field) => field.split(" ")[0] as string))];
  const lines = [
    "# Fields and their proofs",
    "",
    "Written by `make fields`. A proof is a test through real sockets; `make fields-check` runs it without the field, and with another value, and it must fail by an assertion.",
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

/**
 * Walls between modules and folders: every import in src is one that src/rooms.json allows, the lint rule says the same,
 * and no ring of imports crosses a folder.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { findRings, lintOverrides, readImports, readRooms } from "../../tools/modules.ts";

const ROOT = join(import.meta.dirname, "../..");
function roomOf(path: string): string {
  const [top, second] = path.split("/");
  if (top === "src") return second ?? "";
  if (top === "generated") return second?.includes(".") === true ? "generated" : `generated/${second ?? ""}`;
  return top ?? "";
}

test("every import between rooms is one that src/rooms.json allows", () => {
  const rooms = readRooms();
  const found = readImports();
  assert.ok(found.length > 50, "the scanner sees the imports");
  const offences = found.filter(({ file, target, typeOnly }) => {
    const from = roomOf(file);
    const to = roomOf(target);
    const room = rooms[from];
    if (room === undefined) return true;
    if (from === to || room.may.includes("*")) return false;
    const allowed = typeOnly ? [...room.may, ...(room.types ?? [])] : room.may;
    return !allowed.some((name) => to === name || to.startsWith(`${name}/`));
  });
  assert.deepEqual(
    offences.map(({ file, target }) => `${file} imports ${target}`),
    [],
  );
});

/** Rings of this many files within one folder are parts that call each other, such as a parser's; more are a tangle. */
const LARGEST_RING = 4;

test("no ring of imports crosses a folder or has more than four files, types included", () => {
  const rings = findRings(readImports());
  assert.ok(rings.length > 0, "the scanner sees the rings within folders");
  assert.deepEqual(
    rings.filter((ring) => ring.length > LARGEST_RING || new Set(ring.map((file) => dirname(file))).size > 1),
    [],
    "move the type that closes the ring to the lower file, or to a file that both import",
  );
});

/** Pairs that remain: a registry that creates a handler of each kind. */
const KNOWN_PAIRS = [
  "src/proxy/backends and src/proxy/llm",
  "src/proxy/backends and src/proxy/mcp",
  "src/proxy/backends and src/proxy/llm/models",
];

test("two folders never import each other, unless one is inside the other", () => {
  const imports = new Set(readImports().map(({ file, target }) => `${dirname(file)} ${dirname(target)}`));
  const pairs = [...imports].flatMap((pair) => {
    const [from = "", to = ""] = pair.split(" ");
    if (from >= to || `${to}/`.startsWith(`${from}/`) || !imports.has(`${to} ${from}`)) return [];
    return [`${from} and ${to}`];
  });
  assert.deepEqual(pairs, KNOWN_PAIRS);
});

test("no policy imports another policy, the router, the backends or the LLM room", () => {
  const all = readImports();
  const policies = new Set(
    all.filter(({ file, typeOnly }) => file === "src/proxy/policies/index.ts" && !typeOnly).map(({ target }) => target),
  );
  assert.ok(policies.size > 10, "the table imports every policy");
  const offences = all
    .filter(({ file }) => file.startsWith("src/proxy/policies/") && !file.endsWith("/index.ts"))
    .filter(({ target }) => policies.has(target) || /^src\/proxy\/(router|backends|llm|listeners)\//.test(target));
  assert.deepEqual(
    offences.map(({ file, target }) => `${file} imports ${target}`),
    [],
  );
});

test("every HTTP server beside the byte path runs on h3", () => {
  const servers = globSync("src/**/*.ts", { cwd: ROOT })
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), "utf8") }))
    .filter(({ text }) => /import \{[^}]*\bcreateServer\b[^}]*\} from "node:https?"/.test(text));
  assert.deepEqual(
    servers.filter(({ text }) => !text.includes('"h3/node"')).map(({ file }) => file),
    ["src/proxy/listeners/http1/server.ts"],
  );
});

test("the lint rule is made from src/rooms.json", () => {
  const lint = JSON.parse(readFileSync(join(ROOT, ".oxlintrc.json"), "utf8")) as { overrides: unknown };
  assert.deepEqual(lint.overrides, lintOverrides(readRooms()), "run `make generate`");
});

test("every property is checked with the seed of the run", () => {
  const offences = globSync("test/**/*.ts", { cwd: ROOT }).filter((file) =>
    /\bfc\.assert\(/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  assert.deepEqual(offences, ["test/support/fixtures/seed.ts"]);
});

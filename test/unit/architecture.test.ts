/** The rooms rule: every import in src is one that src/rooms.json allows, and the lint rule says the same. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { lintOverrides, readRooms } from "../../tools/modules.ts";

const ROOT = join(import.meta.dirname, "../..");
const IMPORT = /(?:^|\n)\s*(?:import|export)\s+(type\s)?(?:[^"';]*?\sfrom\s+)?"(\.[^"]+)"|import\(\s*"(\.[^"]+)"\s*\)/g;

interface Edge {
  readonly file: string;
  readonly target: string;
  readonly typeOnly: boolean;
}

function edges(): Edge[] {
  return globSync("src/**/*.ts", { cwd: ROOT }).flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return [...text.matchAll(IMPORT)].map((match) => ({
      file,
      target: relative(ROOT, join(ROOT, dirname(file), match[2] ?? match[3] ?? "")),
      typeOnly: match[1] !== undefined,
    }));
  });
}

function roomOf(path: string): string {
  const [top, second] = path.split("/");
  if (top === "src") return second ?? "";
  if (top === "generated") return second?.includes(".") === true ? "generated" : `generated/${second ?? ""}`;
  return top ?? "";
}

test("every import between rooms is one that src/rooms.json allows", () => {
  const rooms = readRooms();
  const found = edges();
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

test("no policy imports another policy, the router, the backends or the LLM room", () => {
  const all = edges();
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

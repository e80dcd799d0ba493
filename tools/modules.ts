/**
 * Turns src/rooms.json, the table of the modules and their allowed imports, into the lint rule that enforces it. Run as
 * a program it rewrites the overrides in .oxlintrc.json; the architecture test proves that they are up to date. The test
 * also reads the imports of src with it, and finds rings among them.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export interface Room {
  /** Modules whose values and types it may import; "*" means all. */
  readonly may: readonly string[];
  /** Modules of which it may import only types. */
  readonly types?: readonly string[];
}
export type Rooms = Readonly<Record<string, Room>>;

interface LintOverride {
  readonly files: readonly string[];
  readonly rules: Readonly<Record<string, unknown>>;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LINT_FILE = `${ROOT}.oxlintrc.json`;
const GENERATED_PARTS = ["generated/types", "generated/proto", "generated/validators", "generated/console"];

/** Modules that get clock, disk and network passed in; only node:crypto is allowed, for digests. */
const WITHOUT_NODE = ["api", "translator"];

export function readRooms(): Rooms {
  // The cast is safe: the file is ours, and the architecture test fails for another shape.
  return JSON.parse(readFileSync(`${ROOT}src/rooms.json`, "utf8")) as Rooms;
}

export function lintOverrides(rooms: Rooms): LintOverride[] {
  return Object.entries(rooms)
    .filter(([, room]) => !room.may.includes("*"))
    .map(([name, room]) => ({
      files: [`src/${name}/**`],
      rules: { "no-restricted-imports": ["error", { patterns: forbidden(name, room, Object.keys(rooms)) }] },
    }));
}

function forbidden(name: string, room: Room, all: readonly string[]): { group: string[]; message: string }[] {
  const allowed = [name, ...room.may, ...(room.types ?? [])];
  const others = [...all, "codegen"].filter((other) => !allowed.includes(other));
  const parts = allowed.includes("generated") ? [] : GENERATED_PARTS.filter((part) => !allowed.includes(part));
  const patterns = [...others, ...parts].map((other) => ({
    // Begin with two dots, which match the module of that name and not a folder of the same name inside this module.
    group: [`../${other}/**`, `../../${other}/**`, `../../../${other}/**`, `../../../../${other}/**`],
    message: `${name} may not import ${other} (src/rooms.json)`,
  }));
  const node = {
    group: ["node:*", "!node:crypto"],
    message: `${name} is pure: what it needs of Node beside node:crypto is passed in`,
  };
  return WITHOUT_NODE.includes(name) ? [...patterns, node] : patterns;
}

export interface ImportEdge {
  readonly file: string;
  readonly target: string;
  readonly typeOnly: boolean;
}

const IMPORT = /(?:^|\n)\s*(?:import|export)\s+(type\s)?(?:[^"';]*?\sfrom\s+)?"(\.[^"]+)"|import\(\s*"(\.[^"]+)"\s*\)/g;

/** Reads every relative import and re-export in src, with paths from the root of the repository. */
export function readImports(): ImportEdge[] {
  return globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return [...text.matchAll(IMPORT)].map((match) => ({
      file,
      target: relative(ROOT, join(ROOT, dirname(file), match[2] ?? match[3] ?? "")),
      typeOnly: match[1] !== undefined,
    }));
  });
}

/**
 * Finds the rings of imports, types included: the strongly connected components with more than one file (Tarjan's
 * algorithm).
 */
export function findRings(edges: readonly ImportEdge[]): string[][] {
  const targets = Map.groupBy(edges, ({ file }) => file);
  const order = new Map<string, number>();
  const open: string[] = [];
  const rings: string[][] = [];
  const visit = (file: string): number => {
    const rank = order.size;
    order.set(file, rank);
    open.push(file);
    let low = rank;
    for (const { target } of targets.get(file) ?? []) {
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, order.get(target) ?? low);
    }
    if (low === rank) {
      const ring = open.splice(open.indexOf(file));
      if (ring.length > 1) rings.push(ring.sort());
    }
    return low;
  };
  for (const file of targets.keys()) if (!order.has(file)) visit(file);
  return rings;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lint = JSON.parse(readFileSync(LINT_FILE, "utf8")) as Record<string, unknown>;
  writeFileSync(LINT_FILE, `${JSON.stringify({ ...lint, overrides: lintOverrides(readRooms()) }, null, 2)}\n`);
}
